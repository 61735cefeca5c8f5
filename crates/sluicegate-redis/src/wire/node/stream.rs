//! Byte streams to a server: TCP, TLS over TCP, or a Unix socket.

use std::io;

use redis::{ConnectionAddr, ConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

#[cfg(feature = "tls")]
use crate::wire::tls::Tls;

/// How many addresses of one name are tried.
const ADDRESSES: usize = 8;

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

pub(super) type Stream = Box<dyn Io>;

pub(super) async fn open(
    info: &ConnectionInfo,
    #[cfg(feature = "tls")] tls: Option<&Tls>,
) -> io::Result<Stream> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } => {
            let tls = tls.ok_or_else(|| unsupported("TLS is not configured"))?;
            Ok(Box::new(tls.connect(host, tcp(host, *port).await?).await?))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        _ => Err(unsupported("this kind of address is not supported on this platform")),
    }
}

/// Tries all addresses of a name at once, so that one that hangs delays nothing.
///
/// `TCP_NODELAY` stays off: Nagle's algorithm merges commands that are sent at the same time, and without it a server
/// answered half as many.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut trying = JoinSet::new();
    for address in lookup_host((host, port)).await?.take(ADDRESSES) {
        trying.spawn(TcpStream::connect(address));
    }
    let mut why = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    while let Some(tried) = trying.join_next().await {
        match tried {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = error,
            Err(_) => {}
        }
    }
    Err(why)
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what)
}
