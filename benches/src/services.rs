//! One axum service behind each limiter, and requests for it: no sockets, no runtime.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use axum::routing::get;
use governor::clock::QuantaInstant;
use governor::middleware::{NoOpMiddleware, RateLimitingMiddleware};
use http::{Request, StatusCode};
use tollgate_axum::{Bare, Fields, Ip, Limit, RateLimitLayer};
use tower::Service;
use tower::util::MapRequestLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::PeerIpKeyExtractor;

/// How many addresses the requests come from.
const PEERS: u32 = 1_000;

/// So much at once that nobody is refused, at one a second, so that nobody recovers either: each
/// request finds the row of its address and writes it.
const PLENTY: u32 = 1_000_000_000;

/// A service that is called directly, by one address after the other.
#[derive(Debug)]
pub struct App {
    /// What it is called in a table.
    pub name: &'static str,
    router: Router,
    expected: StatusCode,
    peer: u32,
}

impl App {
    fn new(name: &'static str, router: Router, expected: StatusCode) -> Self {
        // As `into_make_service` does for a server: without it a router puts its layers around the
        // handler anew for each request.
        let router = router.with_state(());
        let mut app = Self { name, router, expected, peer: 0 };
        // From here on every address has been met, and those that are to be refused are.
        for _ in 0..PEERS {
            app.answer();
        }
        app
    }

    /// Makes a request and has it answered.
    ///
    /// # Panics
    ///
    /// When the status is not the expected one.
    pub fn call(&mut self) {
        let status = self.answer().status();
        assert_eq!(status, self.expected, "{}", self.name);
    }

    fn answer(&mut self) -> Response {
        self.peer = (self.peer + 1) % PEERS;
        let address = Ipv4Addr::from_bits(0x0a00_0000 + self.peer);
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((address, 50_123))));

        // A router is always ready, and nothing in here ever waits.
        let future = pin!(self.router.call(request));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(response)) => response,
            Poll::Pending => unreachable!("the handler does not wait"),
        }
    }
}

/// Services whose every request is let through.
pub fn served() -> [App; 7] {
    let app = |name, router| App::new(name, router, StatusCode::OK);
    let hello = || Router::new().route("/", get(async || "hello"));
    let layer = || RateLimitLayer::new(Limit::per_second(1).burst(PLENTY.into()).by(Ip::peer()));
    let rival = || rival(Duration::from_secs(1), PLENTY);
    [
        app("axum, no layer", hello()),
        app("axum, a layer that does nothing", hello().layer(nothing())),
        app(
            "tollgate, no fields, no extensions",
            hello().layer(layer().fields(Fields::NONE).extensions(false)),
        ),
        app("tower_governor", hello().layer(GovernorLayer::new(finished(rival())))),
        app(
            "tollgate, `X-RateLimit`, no extensions",
            hello().layer(layer().fields(Fields::X_RATE_LIMIT).extensions(false)),
        ),
        app(
            "tower_governor, `X-RateLimit`",
            hello().layer(GovernorLayer::new(finished(rival().use_headers()))),
        ),
        app("tollgate, as it comes", hello().layer(layer())),
    ]
}

/// Services whose every request is refused, after the first of each address.
pub fn refused() -> [App; 6] {
    let app = |name, router| App::new(name, router, StatusCode::TOO_MANY_REQUESTS);
    let hello = || Router::new().route("/", get(async || "hello"));
    let handler = get(async || (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests"));
    let layer = || RateLimitLayer::new(Limit::per_hour(1).by(Ip::peer()));
    let rival = || rival(Duration::from_secs(3_600), 1);
    [
        app("axum, a handler that answers 429", Router::new().route("/", handler)),
        app(
            "tollgate, no body, no fields",
            hello().layer(layer().respond(Bare).fields(Fields::NONE).extensions(false)),
        ),
        app("tower_governor", hello().layer(GovernorLayer::new(finished(rival())))),
        app(
            "tollgate, `X-RateLimit`, no extensions",
            hello().layer(layer().fields(Fields::X_RATE_LIMIT).extensions(false)),
        ),
        app(
            "tower_governor, `X-RateLimit`",
            hello().layer(GovernorLayer::new(finished(rival().use_headers()))),
        ),
        app("tollgate, as it comes", hello().layer(layer())),
    ]
}

/// What a layer costs in axum before it does anything.
fn nothing() -> MapRequestLayer<fn(Request<Body>) -> Request<Body>> {
    MapRequestLayer::new(|request| request)
}

type Rival<M> = GovernorConfigBuilder<PeerIpKeyExtractor, M>;

fn rival(period: Duration, burst: u32) -> Rival<NoOpMiddleware<QuantaInstant>> {
    GovernorConfigBuilder::default().const_period(period).const_burst_size(burst)
}

fn finished<M>(mut rival: Rival<M>) -> GovernorConfig<PeerIpKeyExtractor, M>
where
    M: RateLimitingMiddleware<QuantaInstant>,
{
    rival.finish().expect("neither the period nor the burst is zero")
}
