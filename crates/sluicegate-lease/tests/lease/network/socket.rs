use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};
use turmoil::net::{TcpListener, TcpStream};

/// A simulated connection.
pub(crate) struct Socket(TcpStream);

impl Connected for Socket {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Accepts connections on a port.
pub(crate) async fn accept(port: u16) -> io::Result<ReceiverStream<io::Result<Socket>>> {
    let listener = TcpListener::bind(("0.0.0.0", port)).await?;
    let (sender, sockets) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if sender.send(Ok(Socket(stream))).await.is_err() {
                return;
            }
        }
    });
    Ok(ReceiverStream::new(sockets))
}

/// Connects through the simulated network.
pub(crate) fn dial(endpoint: Endpoint) -> Channel {
    endpoint.connect_with_connector_lazy(tower::service_fn(|uri: Uri| async move {
        let host = uri.host().unwrap_or_default().to_owned();
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
        Ok::<_, io::Error>(TokioIo::new(Socket(stream)))
    }))
}
