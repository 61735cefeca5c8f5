//! axum: a router with one route, called as a server calls it.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, StatusCode};
use sluicegate_axum::response::Bare;
use sluicegate_axum::{Fields, Ip, RateLimitLayer};
use tower::util::MapRequestLayer;
use tower::{Service, ServiceBuilder};
use tower_resilience_ratelimiter::RateLimiterServiceError;

use super::{App, Budget, now, rivals};

/// Notes for readers of the tables.
pub const NOTES: &str = "\
`All its fields`: axum-governor and tokio-rate-limit cannot leave them out; rate-net writes its own with
every refusal. tower-resilience knows one limit for everybody, and its refusal is an error, which axum's
`HandleErrorLayer` answers. tower-rate-limiter 0.2.0-alpha.0 is missing: it asks for Rust 1.96.";

/// The index of the baseline in [`served`] and [`served_without_fields`].
pub const IDENTITY: usize = 1;

/// The index of the baseline in [`refused`] and [`refused_without_body`].
pub const HANDLER: usize = 0;

/// Services that admit every request.
pub fn served(peers: u32) -> Vec<App> {
    let budget = Budget::Plenty;
    let mut apps = served_without_fields(peers);
    apps.extend(with_fields(budget, peers));
    apps
}

/// Those of them that write no fields, but for two that cannot leave them out.
pub fn served_without_fields(peers: u32) -> Vec<App> {
    let budget = Budget::Plenty;
    let app = |name, router| app(name, budget, peers, router);
    let mut apps = vec![
        app("axum, no layer", hello()),
        app("axum, a layer that does nothing", hello().layer(identity())),
        app("sluicegate, no fields, no extensions", sluicegate_without_fields(budget)),
        app("tower_governor", tower_governor(budget)),
        app("rate-net", hello().layer(rivals::rate_net(budget))),
        app("rate-net, coarse clock", hello().layer(rivals::rate_net_on_coarse_clock(budget))),
        app("tower-resilience, one limit for all", tower_resilience(budget)),
    ];
    apps.extend(always_with_fields(budget, peers));
    apps
}

/// Services that refuse every request after the first of each address.
pub fn refused(peers: u32) -> Vec<App> {
    let budget = Budget::Spent;
    let mut apps = refused_without_body(peers);
    apps.extend(with_fields(budget, peers));
    apps
}

/// Those of them that say the least, beside a handler that answers 429 by itself.
pub fn refused_without_body(peers: u32) -> Vec<App> {
    let budget = Budget::Spent;
    let app = |name, router| app(name, budget, peers, router);
    let refuse = get(async || (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests"));
    let mut apps = vec![
        app("axum, a handler that answers 429", Router::new().route("/", refuse)),
        app("sluicegate, no body, no fields", sluicegate_without_body(budget)),
        app("sluicegate, no fields", sluicegate_without_fields(budget)),
        app("tower_governor", tower_governor(budget)),
        app("rate-net", hello().layer(rivals::rate_net(budget))),
        app("rate-net, coarse clock", hello().layer(rivals::rate_net_on_coarse_clock(budget))),
        app("tower-resilience, one limit for all", tower_resilience(budget)),
    ];
    apps.extend(always_with_fields(budget, peers));
    apps
}

fn always_with_fields(budget: Budget, peers: u32) -> [App; 2] {
    let app = |name, router| app(name, budget, peers, router);
    [
        app("axum-governor, all its fields", hello().layer(rivals::axum_governor(budget))),
        app("tokio-rate-limit, all its fields", hello().layer(rivals::tokio_rate_limit(budget))),
    ]
}

fn with_fields(budget: Budget, peers: u32) -> [App; 5] {
    let app = |name, router| app(name, budget, peers, router);
    let x_rate_limit = sluicegate(budget).fields(Fields::X_RATE_LIMIT).extensions(false);
    let draft = sluicegate(budget).extensions(false);
    let headers = rivals::tower_governor_with_headers(budget);
    [
        app("sluicegate, draft fields, no extensions", hello().layer(draft)),
        app("sluicegate, `X-RateLimit`, no extensions", hello().layer(x_rate_limit)),
        app("sluicegate, as it comes", sluicegate_as_it_comes(budget)),
        app("tower_governor, `X-RateLimit`", hello().layer(headers)),
        app("rate-net, all its fields", hello().layer(rivals::rate_net_with_headers(budget))),
    ]
}

/// A handler that says hello, and nothing else.
pub fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

/// The same behind sluicegate without fields and extensions.
pub fn sluicegate_without_fields(budget: Budget) -> Router {
    hello().layer(sluicegate(budget).fields(Fields::NONE).extensions(false))
}

/// The same, with refusals that only contain when to come back.
pub fn sluicegate_without_body(budget: Budget) -> Router {
    hello().layer(sluicegate(budget).respond(Bare).fields(Fields::NONE).extensions(false))
}

/// The same behind sluicegate with its defaults.
pub fn sluicegate_as_it_comes(budget: Budget) -> Router {
    hello().layer(sluicegate(budget))
}

/// The same behind tower_governor with its defaults.
pub fn tower_governor(budget: Budget) -> Router {
    hello().layer(rivals::tower_governor(budget))
}

fn sluicegate(budget: Budget) -> RateLimitLayer<sluicegate_axum::rule::By<Ip>> {
    RateLimitLayer::new(budget.limit().by(Ip::peer()))
}

/// Its refusal is an error, for which axum requires a handler.
fn tower_resilience(budget: Budget) -> Router {
    let answer = async |_: RateLimiterServiceError<Infallible>| StatusCode::TOO_MANY_REQUESTS;
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(answer))
        .layer(rivals::tower_resilience(budget));
    hello().layer(layers)
}

/// The cost of a layer in axum that does nothing.
pub(super) fn identity() -> MapRequestLayer<fn(Request<Body>) -> Request<Body>> {
    MapRequestLayer::new(|request| request)
}

pub(super) fn app(name: &'static str, budget: Budget, peers: u32, router: Router) -> App {
    // As `into_make_service` does for a server. Without it, a router puts its layers around the handler anew for each
    // request.
    let mut router = router.with_state(());
    App::new(name, budget, peers, move |peer: SocketAddr| {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        let Ok(response) = now(router.call(request));
        response.status().as_u16()
    })
}
