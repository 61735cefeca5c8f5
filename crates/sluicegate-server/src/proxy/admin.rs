//! Health and metrics, on a port of their own: every path of the proxied port is the application's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::admin::metrics::{Metrics, routes as metrics_routes};
use crate::admin::{Token, guarded};
use crate::listen::{Activity, ServeConnection, Timed, Tracked, Upload};
use axum::Router;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sluicegate_config::proxy::Upstream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tower_service::Service as _;

/// How long a client may take for the head of a request.
const SLOWEST: Duration = Duration::from_secs(10);

/// How long a client may read nothing of an answer that waits for it.
const UNREAD: Duration = Duration::from_secs(30);

/// How long a connection stays open without a request. What collects metrics keeps one from visit to visit.
const IDLE: Duration = Duration::from_secs(75);

/// Whether the proxy is about to stop.
pub(crate) type Stopping = Arc<AtomicBool>;

/// `/healthz`, 200 as long as the proxy runs; `/readyz`, 503 if it is about to stop or the application does not accept
/// connections; `/metrics`, behind the token.
pub(crate) fn routes(
    upstream: &Upstream,
    stopping: &Stopping,
    metrics: Option<&Metrics>,
    token: Option<Token>,
) -> Router {
    let (upstream, stopping) = (upstream.clone(), Arc::clone(stopping));
    let ready = async move || ready(&upstream, &stopping).await;
    Router::new()
        .merge(guarded(metrics_routes(metrics), token))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
}

/// Serves routes over HTTP/1.
#[derive(Debug, Clone)]
pub(crate) struct AdminPort(Router);

impl AdminPort {
    pub(crate) fn new(routes: Router) -> Self {
        Self(routes)
    }
}

impl ServeConnection for AdminPort {
    fn silence(&self) -> Duration {
        SLOWEST
    }

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    async fn serve(self, stream: TcpStream, peer: SocketAddr, stopping: watch::Receiver<bool>) {
        if let Err(error) = self.speak(stream, stopping).await {
            tracing::debug!(%peer, %error, "connection to the admin port ended");
        }
    }
}

impl AdminPort {
    async fn speak<S>(self, stream: S, mut stopping: watch::Receiver<bool>) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Activity::new();
        let service = service_fn(|request: Request<Incoming>| {
            let (mut routes, in_flight) = (self.0.clone(), activity.begin());
            let (request, rest) = Upload::watch(request);
            async move {
                let mut response = routes.call(request).await?;
                rest.settle(response.headers_mut()).await;
                Ok::<_, Infallible>(response.map(|body| Tracked::new(body, Some(in_flight))))
            }
        });
        let stream = Timed::new(stream, Arc::clone(&activity), SLOWEST, UNREAD);
        let mut builder = Builder::new();
        builder.header_read_timeout(None);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let last_request = async {
            tokio::select! {
                // An error: the proxy is gone.
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = activity.idle(IDLE) => {}
            }
        };
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = last_request => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    }
}

async fn ready(upstream: &Upstream, stopping: &AtomicBool) -> (StatusCode, &'static str) {
    const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    if stopping.load(Ordering::Relaxed) {
        return (UNAVAILABLE, "stopping\n");
    }
    match timeout(upstream.connect_timeout, TcpStream::connect(&*address(upstream))).await {
        Ok(Ok(_)) => (StatusCode::OK, "ok\n"),
        Ok(Err(_)) => (UNAVAILABLE, "the application does not accept connections\n"),
        Err(_) => (UNAVAILABLE, "the application did not accept a connection in time\n"),
    }
}

/// The host with its port. The default is that of the scheme.
fn address(upstream: &Upstream) -> String {
    with_port(&upstream.authority, if upstream.tls.is_some() { 443 } else { 80 })
}

fn with_port(authority: &str, default: u16) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if has_port { authority.to_owned() } else { format!("{authority}:{default}") }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn metrics_can_be_collected_once_a_minute_on_one_connection() {
        let port = AdminPort::new(Router::new().route("/metrics", get(async || "none\n")));
        let (mut client, server) = duplex(4096);
        let (_running, stopping) = watch::channel(false);
        let served = tokio::spawn(port.speak(server, stopping));
        let begun = Instant::now();
        for _ in 0..3 {
            client.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
            let mut answer = Vec::new();
            while !answer.ends_with(b"none\n") {
                answer.push(client.read_u8().await.expect("an answer"));
            }
            assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
            sleep(Duration::from_secs(60)).await;
        }
        client.read_to_end(&mut Vec::new()).await.expect("the end");
        assert!(begun.elapsed() < Duration::from_secs(2 * 60 + 90), "{:?}", begun.elapsed());
        served.await.expect("no panic").expect("no error");
    }

    #[test]
    fn a_host_without_a_port_has_that_of_its_scheme() {
        assert_eq!(with_port("app", 80), "app:80");
        assert_eq!(with_port("app:3000", 80), "app:3000");
        assert_eq!(with_port("[::1]", 443), "[::1]:443");
        assert_eq!(with_port("[::1]:3000", 443), "[::1]:3000");
    }
}
