//! A limit in a nested router sees the whole path of a request, as the client wrote it.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::routing::get;
use sluicegate_axum::condition::Not;
use sluicegate_axum::key::Path;
use sluicegate_axum::{Ip, Limit, Memory, RateLimitLayer, Route};
use tower::{ServiceBuilder, ServiceExt};

const PEER: &str = "192.0.2.1:1";

async fn served(app: &Router, paths: &[&str]) -> usize {
    let mut served = 0;
    for path in paths.iter().cycle().take(4 * paths.len()) {
        let peer: SocketAddr = PEER.parse().unwrap();
        let request = Request::get(*path).extension(ConnectInfo(peer)).body(Body::empty()).unwrap();
        served += usize::from(app.clone().oneshot(request).await.unwrap().status() == 200);
    }
    served
}

fn login() -> Router {
    Router::new().route("/login", get(|| async {}))
}

/// One request for which the condition holds.
macro_rules! one {
    ($condition:expr) => {
        RateLimitLayer::new(Limit::per_hour(1).by(Ip::peer()).when($condition))
            .store(Memory::builder().capacity(100).build())
    };
}

/// `/api/v1/login`, with the limit at each level.
macro_rules! levels {
    ($condition:expr) => {
        [
            (
                "in the innermost",
                Router::new()
                    .nest("/api", Router::new().nest("/v1", login().layer(one!($condition)))),
            ),
            (
                "in the one around it",
                Router::new()
                    .nest("/api", Router::new().nest("/v1", login()).layer(one!($condition))),
            ),
            (
                "around all",
                Router::new()
                    .nest("/api", Router::new().nest("/v1", login()))
                    .layer(one!($condition)),
            ),
            (
                "around the routes of a service",
                Router::new().nest_service(
                    "/api",
                    Router::new().nest("/v1", login().layer(one!($condition))),
                ),
            ),
            (
                "in a service",
                Router::new().nest(
                    "/api",
                    Router::new().nest_service("/v1", login().layer(one!($condition))),
                ),
            ),
        ]
    };
}

#[tokio::test]
async fn a_nested_router_is_no_way_around_a_path() {
    for (level, app) in levels!(Path.matches("/api/v1/login")) {
        assert_eq!(served(&app, &["/api/v1/login"]).await, 1, "{level}");
    }
    let limited = ServiceBuilder::new().layer(one!(Path.matches("/api/v1/login"))).service(login());
    let app = Router::new().nest("/api", Router::new().nest_service("/v1", limited));
    assert_eq!(served(&app, &["/api/v1/login"]).await, 1, "around a service");
}

#[tokio::test]
async fn a_nested_router_is_no_way_around_a_route() {
    for (level, app) in levels!(Route.is("/api/v1/login")) {
        assert_eq!(served(&app, &["/api/v1/login"]).await, 1, "{level}");
    }
}

#[tokio::test]
async fn in_front_of_the_routing_a_route_is_compared_with_the_path() {
    let app = Router::new().nest_service("/api", login()).layer(one!(Route.is("/api/login")));
    assert_eq!(served(&app, &["/api/login"]).await, 1, "around a service");
    let app = Router::new().nest("/api", login());
    let app = ServiceBuilder::new().layer(one!(Route.is("/api/login"))).service(app);
    let app = Router::new().fallback_service(app);
    assert_eq!(served(&app, &["/api/login"]).await, 1, "around the router");
}

#[tokio::test]
async fn the_rest_of_a_path_matches_where_only_the_rest_is_routed() {
    let app = Router::new().nest("/api", login().layer(one!(Path.matches("/login"))));
    assert_eq!(served(&app, &["/api/login"]).await, 1);
    let app = Router::new().nest("/api", login()).layer(one!(Path.matches("/login")));
    assert_eq!(
        served(&app, &["/api/login"]).await,
        4,
        "around the outer router it is another path"
    );
}

#[tokio::test]
async fn an_exception_in_a_nested_router_is_for_the_whole_path() {
    let routes = Router::new().route("/health", get(|| async {})).route("/other", get(|| async {}));
    let app = Router::new().nest("/api", routes.layer(one!(Not(Path.matches("/api/health")))));
    assert_eq!(served(&app, &["/api/health"]).await, 4);
    assert_eq!(served(&app, &["/api/other"]).await, 1);
}

#[tokio::test]
async fn the_path_as_a_key_is_the_whole_one() {
    let layer = RateLimitLayer::new(Limit::per_hour(1).by(Path))
        .store(Memory::builder().capacity(100).build());
    let app =
        Router::new().nest("/a", login().layer(layer.clone())).nest("/b", login().layer(layer));
    assert_eq!(served(&app, &["/a/login"]).await, 1);
    assert_eq!(served(&app, &["/b/login"]).await, 1);
}

#[tokio::test]
async fn a_path_that_was_rewritten_matches_as_it_was_and_as_it_is() {
    let rewrite = |mut request: Request| {
        *request.uri_mut() = "/login".parse().unwrap();
        request
    };
    for pattern in ["/old", "/login"] {
        let inner = login().layer(one!(Path.matches(pattern)));
        let inner = ServiceBuilder::new().map_request(rewrite).service(inner);
        let app = Router::new().fallback_service(inner);
        assert_eq!(served(&app, &["/old"]).await, 1, "{pattern}");
    }
}
