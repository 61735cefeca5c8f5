//! Connections to other servers, with or without TLS.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// Opens connections, each within the time that one may take: for TCP and the handshake of TLS together. hyper-rustls has no
/// time for the latter, and a server that accepts and says nothing would be waited for without end.
#[derive(Clone)]
pub(crate) struct ClientConnector {
    inner: HttpsConnector<HttpConnector>,
    time: Duration,
}

impl ClientConnector {
    pub(super) fn new(inner: HttpsConnector<HttpConnector>, time: Duration) -> Self {
        Self { inner, time }
    }
}

impl Service<Uri> for ClientConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { mut inner, time } = self.clone();
        Box::pin(async move {
            let connected = async {
                poll_fn(|cx| inner.poll_ready(cx)).await?;
                inner.call(uri).await
            };
            tokio::time::timeout(time, connected).await.map_err(io::Error::from)?
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::run::client_connector;
    use crate::run::keepalive::asked;

    #[tokio::test]
    async fn a_server_that_vanishes_is_found_out_within_a_minute() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let uri = format!("http://{}/", server.local_addr().expect("an address"));
        let connector = client_connector(None, (false, Duration::from_secs(60)));
        let connected = connector.expect("a connector").call(uri.parse().expect("a URI")).await;
        let MaybeHttpsStream::Http(stream) = connected.expect("a connection") else {
            panic!("a connection with TLS");
        };
        assert_eq!(asked(stream.inner()), "true 60");
    }
}
