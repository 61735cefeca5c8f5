//! Opens a connection over TCP, TLS over TCP, or a Unix socket, and greets the server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

use super::connection::{Driver, OpenConnection};
use super::guard::{GuardedStream, Traffic};
use crate::observe::counts::Counters;
use crate::runtime::Runtime;
use crate::wire::epochs::Epochs;
#[cfg(feature = "tls")]
use crate::wire::tls::Tls;
use sluicegate_core::adapter::breaker::{Backoff, BreakerSettings};

/// What all nodes of a store have in common.
#[derive(Clone)]
pub(crate) struct NodeContext {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) connect: ConnectSettings,
    pub(crate) breaker: BreakerSettings,
}

/// How connections are made.
#[derive(Debug, Clone)]
pub(crate) struct ConnectSettings {
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) client_name: Option<Arc<str>>,
    /// Whether RESP3 is tried first.
    pub(crate) resp3: bool,
    /// A connection on which a command stays unanswered for this long is closed.
    pub(crate) silence: Duration,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

/// Connects, and sends `HELLO` or `AUTH` and `SELECT`. `on_end` is called when the connection ends by itself.
pub(super) async fn open(
    info: &ConnectionInfo,
    config: AsyncConnectionConfig,
    (settings, runtime): (&ConnectSettings, &Arc<Runtime>),
    on_end: impl FnOnce() + Send + 'static,
) -> Result<OpenConnection, RedisError> {
    let stream = open_stream(info, settings).await?;
    let traffic = Arc::new(Traffic::default());
    let guarded =
        GuardedStream::new(stream, Arc::clone(runtime), settings.silence, Arc::clone(&traffic));
    let (wire, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), guarded, config).await?;
    Ok(OpenConnection { wire, driver: Driver::start(runtime, driver, on_end), traffic })
}

/// Without the client's own timeouts: they would drop answers that are still needed.
pub(super) fn without_timeouts() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

/// How many addresses of one name are tried.
const ADDRESSES: usize = 8;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "TLS alone has settings"))]
async fn open_stream(
    info: &ConnectionInfo,
    settings: &ConnectSettings,
) -> io::Result<Box<dyn Stream>> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } => {
            let tls = settings.tls.as_ref().ok_or_else(|| unsupported("TLS is not configured"))?;
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
