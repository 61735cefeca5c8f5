//! The layer on axum's routers and routes.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use sluicegate_axum::adapter::Refusal;
use sluicegate_axum::key::Optional;
use sluicegate_axum::response::Problem;
use sluicegate_axum::rule::By;
use sluicegate_axum::{
    CurrentDecision, Header, Ip, Limit, ManualClock, Memory, RateLimitLayer, Rejection, Route,
};
use tower::ServiceExt;

fn store() -> Memory {
    Memory::builder().capacity(1_000).clock(ManualClock::new()).build()
}

async fn send(app: &Router, path: &str, peer: &str) -> Response {
    let peer: SocketAddr = peer.parse().unwrap();
    let request = Request::get(path).extension(ConnectInfo(peer)).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

async fn statuses(app: &Router, path: &str, peer: &str, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(send(app, path, peer).await.status().as_u16());
    }
    statuses
}

async fn text(response: Response) -> String {
    let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn the_peer_is_what_connect_info_says_without_its_port() {
    let layer = RateLimitLayer::new(Limit::per_minute(2).by(Ip::peer())).store(store());
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    assert_eq!(statuses(&app, "/", "192.0.2.1:1000", 2).await, [200, 200]);
    assert_eq!(statuses(&app, "/", "192.0.2.1:2000", 1).await, [429]);
    assert_eq!(statuses(&app, "/", "[::ffff:192.0.2.1]:2000", 1).await, [429]);
    assert_eq!(statuses(&app, "/", "192.0.2.2:1000", 1).await, [200]);
}

#[tokio::test]
async fn without_connect_info_the_answer_is_500_and_not_one_budget_for_all() {
    let layer = RateLimitLayer::new(Limit::per_minute(2).by(Ip::peer()));
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    let response = app.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    // The line to add, for the developer. Builds without debug assertions show it in the log only.
    let line = "app.into_make_service_with_connect_info::<SocketAddr>()";
    assert!(text(response).await.contains(line));
}

#[tokio::test]
async fn routes_have_policies_of_their_own() {
    let store = store();
    let strict = RateLimitLayer::new(Limit::per_minute(1).named("login").by(Ip::peer()));
    let wide = RateLimitLayer::new(Limit::per_minute(4).named("all").by(Ip::peer()));
    let app = Router::new()
        .route("/login", get(|| async {}).layer(strict.store(store.clone())))
        .route("/", get(|| async {}))
        .layer(wide.store(store));
    assert_eq!(statuses(&app, "/login", "192.0.2.1:1", 3).await, [200, 429, 429]);
    // The refusals by the route's own policy were not charged to the router's.
    assert_eq!(statuses(&app, "/", "192.0.2.1:1", 4).await, [200, 200, 200, 429]);
}

#[tokio::test]
async fn the_route_is_the_pattern_that_matched() {
    let layer = RateLimitLayer::new(Limit::per_minute(2).by((Ip::peer(), Route))).store(store());
    let app = Router::new()
        .route("/users/{id}", get(|| async {}))
        .route("/posts/{id}", get(|| async {}))
        .route_layer(layer);
    assert_eq!(statuses(&app, "/users/1", "192.0.2.1:1", 1).await, [200]);
    assert_eq!(statuses(&app, "/users/2", "192.0.2.1:1", 2).await, [200, 429]);
    assert_eq!(statuses(&app, "/posts/1", "192.0.2.1:1", 1).await, [200]);
    assert_eq!(statuses(&app, "/nowhere", "192.0.2.1:1", 1).await, [404]);
}

#[tokio::test]
async fn handlers_can_ask_for_the_decision() {
    let layer = RateLimitLayer::new(Limit::per_minute(3).by(Ip::peer())).store(store());
    let limited = get(|decision: CurrentDecision| async move {
        decision.remaining().unwrap_or_default().to_string()
    });
    let either =
        get(|decision: Option<CurrentDecision>| async move { decision.is_some().to_string() });
    let unlimited = get(|_: CurrentDecision| async {});
    let app = Router::new()
        .route("/", limited.layer(layer))
        .route("/either", either)
        .route("/unlimited", unlimited);
    assert_eq!(text(send(&app, "/", "192.0.2.1:1").await).await, "2");
    assert_eq!(text(send(&app, "/either", "192.0.2.1:1").await).await, "false");
    assert_eq!(statuses(&app, "/unlimited", "192.0.2.1:1", 1).await, [500]);
}

#[tokio::test]
async fn a_handler_is_told_that_nothing_limits_a_request_that_is_not_charged() {
    let told = || {
        get(|CurrentDecision(decision): CurrentDecision| async move {
            decision.remaining().map_or_else(|| "no limit".to_owned(), |left| left.to_string())
        })
    };
    let users = Limit::per_minute(3).by(Optional(Header("x-user")));
    let users = RateLimitLayer::new(users).store(store());
    let all = RateLimitLayer::new(Limit::per_minute(5).by(Ip::peer())).store(store());
    let inside = Router::new().route("/inside", told().layer(users.clone())).layer(all);
    let app = Router::new().route("/", told().layer(users)).merge(inside);
    assert_eq!(text(send(&app, "/", "192.0.2.1:1").await).await, "no limit");
    // What a layer further out has decided stays.
    assert_eq!(text(send(&app, "/inside", "192.0.2.1:1").await).await, "4");
}

#[tokio::test]
async fn a_layer_on_trial_serves_requests_without_a_key() {
    for (rejection, status) in [(Rejection::block(), 500), (Rejection::shadow(), 200)] {
        let layer = RateLimitLayer::new(Limit::per_minute(1).by(Ip::peer())).rejection(rejection);
        let app = Router::new().route("/", get(|| async {})).layer(layer.store(store()));
        let request = Request::get("/").body(Body::empty()).unwrap();
        assert_eq!(app.oneshot(request).await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn refusals_can_be_anything_that_axum_responds_with() {
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Ip::peer()))
        .store(store())
        .respond_with(|refusal: &Refusal, request: &Request| {
            let text = format!("{} on {}", refusal.status(), request.uri().path());
            (StatusCode::IM_A_TEAPOT, [("x-own", "yes")], text)
        });
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    send(&app, "/", "192.0.2.1:1").await;
    let refused = send(&app, "/", "192.0.2.1:1").await;
    assert_eq!(refused.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(refused.headers()["x-own"], "yes");
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(text(refused).await, "429 on /");
}

#[tokio::test]
async fn too_many_can_be_anything_that_axum_responds_with_and_other_refusals_stay() {
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Ip::peer()))
        .store(store())
        .respond_to_too_many(|refusal: &Refusal, _: &Request| {
            (StatusCode::IM_A_TEAPOT, format!("was {}", refusal.status()))
        });
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    send(&app, "/", "192.0.2.1:1").await;
    let refused = send(&app, "/", "192.0.2.1:1").await;
    assert_eq!(refused.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(text(refused).await, "was 429");
    let unwired = Request::get("/").body(Body::empty()).unwrap();
    let missing = app.oneshot(unwired).await.unwrap();
    assert_eq!(missing.status(), 500);
    assert_eq!(missing.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn a_peer_that_something_further_out_has_set_is_taken() {
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Ip::peer())).store(store());
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    let peer = sluicegate_axum::adapter::Peer("192.0.2.9".parse().unwrap());
    for status in [200, 429] {
        let request = Request::get("/").extension(peer).body(Body::empty()).unwrap();
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), status);
    }
}

/// Types that a user writes down name a rule, a store and a responder, and no framework.
struct Limits {
    by_default: RateLimitLayer<By<Ip>>,
    everything_named: RateLimitLayer<By<Route>, Memory, Problem>,
}

#[tokio::test]
async fn a_struct_holds_layers_without_naming_a_framework() {
    let limits = Limits {
        by_default: RateLimitLayer::new(Limit::per_minute(2).by(Ip::peer())),
        everything_named: RateLimitLayer::new(Limit::per_minute(1).by(Route)).store(store()),
    };
    let app = Router::new()
        .route("/", get(|| async {}))
        .layer(limits.everything_named.clone())
        .layer(limits.by_default.clone());
    assert_eq!(statuses(&app, "/", "192.0.2.1:1", 2).await, [200, 429]);
    assert_eq!(limits.everything_named.counts().refused, 1);
    assert_eq!(limits.by_default.counts().refused, 0);
}
