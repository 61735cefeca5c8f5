//! Connections to the master.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::client::conn::http2;
use hyper::rt::{Read, Write};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::Status;
use tonic::body::Body;

use crate::run::Tls;

/// Connections to one server at a time.
#[derive(Default)]
pub(super) struct Lines {
    open: Mutex<OpenLines>,
    /// The certificate of this server, which it shows to the master, and whom it trusts.
    pub(super) tls: OnceLock<Tls>,
}

#[derive(Default)]
struct OpenLines {
    server: Box<str>,
    lines: Vec<Place>,
}

/// A connection, and a place on it that is free again when the second value is dropped: each call on it has a clone.
pub(super) type Place = (http2::SendRequest<Body>, Arc<()>);

/// The most calls on a connection. Streams of Envoys last, and a server takes no more than 1,024 at a time.
const CALLS: u32 = 500;
/// How many bytes of an answer the master may send before its client has read them.
const UNREAD: u32 = 64 * 1024;
/// How long connecting may take. Servers that share a file are near each other.
const CONNECT: Duration = Duration::from_secs(1);
/// Finds connections that have died silently.
const PING: Duration = Duration::from_secs(5);

impl Lines {
    /// A place on a connection to this server.
    pub(super) async fn to(&self, server: &str) -> Result<Place, Status> {
        // Calls that wait while another one connects fail together with it, and do not connect one after the other.
        let place = timeout(CONNECT, self.place_on(server)).await;
        place.unwrap_or_else(|_| Err(unreachable(server, "it does not answer")))
    }

    async fn place_on(&self, server: &str) -> Result<Place, Status> {
        let mut open = self.open.lock().await;
        if *open.server != *server {
            // Calls to the last master end by themselves.
            *open = OpenLines { server: server.into(), lines: Vec::new() };
        }
        open.lines.retain(|(sender, _)| !sender.is_closed());
        let free = open.lines.iter().find(|(_, calls)| Arc::strong_count(calls) <= CALLS as usize);
        if let Some(place) = free {
            return Ok(place.clone());
        }
        let place = (self.connect(server).await?, Arc::default());
        open.lines.push(place.clone());
        Ok(place)
    }

    async fn connect(&self, server: &str) -> Result<http2::SendRequest<Body>, Status> {
        let wrong = || unreachable(server, "its address is not one");
        let uri: Uri = server.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?;
        let port = uri.port_u16().ok_or_else(wrong)?;
        // An address in version 6 has brackets.
        let host = host.trim_matches(['[', ']']);
        let tcp =
            TcpStream::connect((host, port)).await.map_err(|error| unreachable(server, error))?;
        // Messages are small and complete.
        let _ = tcp.set_nodelay(true);
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return shake_hands(server, TokioIo::new(tcp)).await;
        }
        let Some(tls) = self.tls.get() else {
            return Err(unreachable(server, "it has TLS, and this server has no certificate"));
        };
        let config = tls.client().map_err(|error| unreachable(server, error))?;
        let name = ServerName::try_from(tls.name_of(host).to_owned()).map_err(|_| wrong())?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
        shake_hands(server, TokioIo::new(stream.map_err(|error| unreachable(server, error))?)).await
    }
}

async fn shake_hands(
    server: &str,
    stream: impl Read + Write + Send + Unpin + 'static,
) -> Result<http2::SendRequest<Body>, Status> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
    // What all calls may leave unread fits, so a client that does not read stops no other one.
    builder.initial_stream_window_size(UNREAD).initial_connection_window_size(CALLS * UNREAD);
    let shaken = builder.handshake(stream).await;
    let (sender, connection) = shaken.map_err(|error| unreachable(server, error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the master has ended");
        }
    });
    Ok(sender)
}

fn unreachable(server: &str, why: impl Display) -> Status {
    Status::unavailable(format!("the master at {server} cannot be reached: {why}"))
}
