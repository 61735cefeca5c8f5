//! One connection: TLS, then HTTP/1 or HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::patience::Patience;

/// The certificate in force, which a reload replaces.
pub(super) type Certificate = Arc<ArcSwap<TlsAcceptor>>;

/// How long a client may take for its handshake, and for the head of a request.
const SLOWEST: Duration = Duration::from_secs(10);

/// The most calls under way on one connection. Envoy opens few connections.
const STREAMS: u32 = 1_024;

/// The largest head of a request, in bytes.
const HEAD: u32 = 32 * 1024;

/// How often the other end of an idle HTTP/2 connection is asked whether it is there.
const PING: Duration = Duration::from_secs(30);

/// What connections of one port have in common.
#[derive(Clone)]
pub(super) struct Connections {
    builder: Builder<TokioExecutor>,
    router: Router,
    certificate: Option<Certificate>,
}

impl Connections {
    pub(super) fn new(router: Router, certificate: Option<Certificate>) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(SLOWEST)
            .max_buf_size(HEAD as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEAD);
        Self { builder, router, certificate }
    }

    /// Takes no connection in HTTP/1: gRPC has none, and its calls wait for a body for as long as the client likes.
    pub(super) fn http2_only(self) -> Self {
        Self { builder: self.builder.http2_only(), ..self }
    }

    /// Serves a connection until it ends, or until the server stops and its last answer is sent.
    pub(super) async fn serve(self, stream: TcpStream, peer: SocketAddr, stopping: Watcher) {
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let Some(certificate) = &self.certificate else {
            return self.speak(stream, peer, stopping).await;
        };
        let acceptor = TlsAcceptor::clone(&certificate.load());
        match tokio::time::timeout(SLOWEST, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.speak(stream, peer, stopping).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        }
    }

    async fn speak<S>(self, stream: S, peer: SocketAddr, stopping: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = TowerToHyperService::new(WithPeer { router: self.router, peer });
        let connection =
            self.builder.serve_connection(TokioIo::new(Patience::new(stream, SLOWEST)), service);
        if let Err(error) = stopping.watch(connection.into_owned()).await {
            tracing::debug!(%peer, %error, "connection ended");
        }
    }
}

/// The routes, with the peer in the extensions of each request.
#[derive(Clone)]
struct WithPeer {
    router: Router,
    peer: SocketAddr,
}

impl<B> Service<axum::http::Request<B>> for WithPeer
where
    B: axum::body::HttpBody<Data = axum::body::Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    type Response = axum::http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = <Router as Service<axum::http::Request<B>>>::Future;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        <Router as Service<axum::http::Request<B>>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: axum::http::Request<B>) -> Self::Future {
        request.extensions_mut().insert(ConnectInfo(self.peer));
        self.router.call(request)
    }
}
