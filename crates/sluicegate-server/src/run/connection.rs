//! One connection: TLS, then HTTP/1 or HTTP/2.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::calls::Streams;
use super::error::ServerError;
use super::listener::Listener;
use super::routed::{Routed, Shortcut};
#[cfg(unix)]
use super::socket::{self, Socket};
use super::timed::TimedStream;
use crate::health::Health;

/// The certificate in force, which a reload replaces.
pub(crate) type Certificate = Arc<ArcSwap<TlsAcceptor>>;

/// How long a client may take for its handshake, and for the head of a request.
const SLOWEST: Duration = Duration::from_secs(10);

/// How long a client may read nothing of an answer that waits for it.
const READS_NOTHING: Duration = Duration::from_secs(30);

/// How long a connection stays open without a request, as in nginx. Load balancers keep idle connections for
/// 60 seconds by default. The server has to keep them for longer, or a request meets a connection that is just closed.
pub(super) const IDLE: Duration = Duration::from_secs(75);

/// How long a connection without a call stays open when the server stops, for a request that is on its way.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// The most calls under way on one connection. Envoy opens few connections.
const STREAMS: u32 = 1_024;

/// The largest head of a request, in bytes.
const HEAD: u32 = 32 * 1024;

/// The most fields of a request in HTTP/1. A proxy in front adds some to those that its client may send.
const FIELDS: usize = 256;

/// How much of a body may come before the call has read it, in bytes: as much as of all bodies, because a long message that
/// needs several round trips comes later than Envoy waits.
const STREAM_WINDOW: u32 = WINDOW;

/// How much of all bodies of a connection may come before the calls have read them, in bytes.
const WINDOW: u32 = 512 * 1024;

/// The most bytes of an answer that wait for the client to read them.
const UNREAD: usize = 64 * 1024;

/// The largest frame that a client may send, in bytes: the least that the protocol allows.
const FRAME: u32 = 16 * 1024;

/// The most calls that a client has cancelled before the server has seen them. More are an attack, "rapid reset".
const CANCELLED: usize = 20;

/// The most calls of one connection that the server has ended because of an error of the client.
const ERRORS: usize = 256;

/// How often the other end of an idle HTTP/2 connection is asked whether it is there.
const PING: Duration = Duration::from_secs(30);

/// How long it may take to say so.
const PONG: Duration = Duration::from_secs(20);

/// What connections of one port have in common.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(super) health: Arc<Health>,
    pub(super) router: Router,
    /// Answers some calls without the routes.
    pub(super) shortcut: Option<Shortcut>,
    pub(super) certificate: Option<Certificate>,
    pub(super) builder: Builder<Streams>,
    /// How long a connection stays open without a request.
    pub(super) idle: Duration,
    /// Whether one in HTTP/2 may be idle for as long as its client answers pings. gRPC clients keep one connection for hours,
    /// and a new one costs a handshake within the time that they wait for a decision. Anybody else would take the places of
    /// others with it.
    pub(super) keeps_http_2: bool,
    /// How old a connection becomes. The default is any age.
    pub(super) age: Option<Age>,
}

/// How old a connection becomes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Age {
    /// When the client is asked to connect anew.
    pub(crate) most: Duration,
    /// How long the calls under way may take after that.
    pub(crate) grace: Duration,
}

impl Age {
    /// The age of one connection: up to a tenth more or less than `most`, so that those that were made together do not end together.
    fn of_one(self) -> Duration {
        // Every `RandomState` differs from all others; the upper 32 bits of its hash are a fraction.
        let random = RandomState::new().hash_one(self.most) >> 32;
        // In this order, the longest duration does not overflow.
        let more = (self.most / 5).mul_f64(random as f64 / (1_u64 << 32) as f64);
        (self.most - self.most / 10).saturating_add(more)
    }
}

impl Connections {
    pub(crate) fn new(
        health: &Arc<Health>,
        router: Router,
        certificate: Option<Certificate>,
    ) -> Self {
        let health = Arc::clone(health);
        let builder = builder();
        Self {
            health,
            router,
            shortcut: None,
            certificate,
            builder,
            idle: IDLE,
            keeps_http_2: false,
            age: None,
        }
    }

    pub(super) async fn speak<S>(self, stream: S, peer: SocketAddr, stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Activity::new();
        let stream = TimedStream::new(stream, Arc::clone(&activity), SLOWEST, READS_NOTHING, None);
        let health = Arc::clone(&self.health);
        let routed = Routed {
            router: self.router,
            shortcut: self.shortcut,
            activity: Arc::clone(&activity),
            health: Arc::new(Arc::clone(&health)),
            keeps_http_2: self.keeps_http_2,
            peer,
        };
        let connection = self.builder.serve_connection(TokioIo::new(stream), routed);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = last_call(stopping, &activity, (self.idle, self.keeps_http_2)) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            grace = too_old(self.age) => {
                connection.as_mut().graceful_shutdown();
                // A stream that its client never ends, such as one of quotas, is cut off.
                let Ok(ended) = timeout(grace, connection).await else { return };
                ended
            }
        };
        if let Err(error) = ended {
            if is_unreadable(&*error) {
                health.failed("connection", "unreadable", &error);
            }
            tracing::debug!(%peer, %error, "connection ended");
        }
    }
}

impl Connections {
    /// Opens a port for connections like these, at most `most` at a time.
    pub(crate) async fn listen(
        self,
        name: &str,
        address: SocketAddr,
        most: usize,
    ) -> Result<Listener, ServerError> {
        let serve = move |stream, peer, stopping| self.clone().serve(stream, peer, stopping);
        Listener::bind(name, address, most, (SLOWEST, LINGER), serve).await
    }

    /// Like [`listen`](Self::listen), at a Unix socket.
    #[cfg(unix)]
    pub(super) fn listen_at(self, socket: Socket, most: usize) -> Listener<Socket> {
        let serve = move |stream, peer, stopping| self.clone().secure(stream, peer, stopping);
        Listener::at(socket, socket::PEER, most, (SLOWEST, LINGER), serve)
    }

    async fn serve(self, stream: TcpStream, peer: SocketAddr, stopping: watch::Receiver<bool>) {
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        self.secure(stream, peer, stopping).await;
    }

    async fn secure<S>(self, stream: S, peer: SocketAddr, stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Some(certificate) = &self.certificate else {
            return self.speak(stream, peer, stopping).await;
        };
        if let Some(stream) = shake_hands(certificate, stream, peer, SLOWEST).await {
            self.speak(stream, peer, stopping).await;
        }
    }
}

/// The TLS stream of a client, if its handshake succeeds in `time`.
pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    certificate: &Certificate,
    stream: S,
    peer: SocketAddr,
    time: Duration,
) -> Option<TlsStream<S>> {
    let acceptor = TlsAcceptor::clone(&certificate.load());
    match timeout(time, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
    }
    None
}

/// Whether the client has sent something that is no request.
fn is_unreadable(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}

/// Ready when a connection is to end, because it is idle or the server stops.
async fn last_call(stopping: watch::Receiver<bool>, activity: &Activity, idle: (Duration, bool)) {
    tokio::select! {
        () = stops(stopping, activity) => {}
        () = is_idle(activity, idle) => {}
    }
}

/// Ready when a connection is too old. Returns how long its calls may take.
async fn too_old(age: Option<Age>) -> Duration {
    match age {
        Some(age) => {
            tokio::time::sleep(age.of_one()).await;
            age.grace
        }
        None => std::future::pending().await,
    }
}

/// Ready when a connection of a server that stops is to end. HTTP/2 has a message for that, after which every call that
/// the client has sent is answered. In HTTP/1 a connection just closes, so one without a request waits for a moment:
/// what is on its way is answered, and the answer says that it is the last.
pub(crate) async fn stops(mut stopping: watch::Receiver<bool>, activity: &Activity) {
    // An error: the server is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    if !activity.is_http_2() {
        tokio::time::sleep(LINGER).await;
    }
}

/// Ready when a connection has been idle for too long, unless it is in HTTP/2 and such ones are kept.
async fn is_idle(activity: &Activity, (time, keeps_http_2): (Duration, bool)) {
    activity.idle(time).await;
    if keeps_http_2 && activity.is_http_2() {
        std::future::pending::<()>().await;
    }
}

fn builder() -> Builder<Streams> {
    let mut builder = Builder::new(Streams);
    builder
        .http1()
        // It also runs while a connection is idle: see `TimedStream`.
        .header_read_timeout(None)
        .max_headers(FIELDS)
        .max_buf_size(HEAD as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .max_frame_size(FRAME)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(UNREAD)
        .max_pending_accept_reset_streams(CANCELLED)
        .max_local_error_reset_streams(ERRORS);
    builder
}
