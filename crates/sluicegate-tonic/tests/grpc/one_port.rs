//! One layer around a router that serves gRPC and plain HTTP on one port.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::Guard;
use sluicegate_tonic::{Grpc, Ip, Limit};
use tonic::Code;
use tonic::service::Routes;
use tonic_health::server::health_reporter;

use crate::servers::{check, client, plain, serve_axum, still};

const TWO: Limit = Limit::per(2, Duration::from_secs(3600)).named("two");

/// Serves `/` and the health service of tonic behind `layer`.
macro_rules! serve_both {
    ($layer:expr) => {{
        let (_, health) = health_reporter();
        let grpc = Routes::new(health).into_axum_router().reset_fallback();
        let app: Router = Router::new().route("/", get(async || "hello")).merge(grpc);
        serve_axum(app.layer($layer)).await
    }};
}

async fn each_is_refused_in_its_own_way(address: SocketAddr) {
    let mut client = client(address).await;
    assert!(check(&mut client).await.is_ok());
    assert!(plain(address, "GET /", "").await.starts_with("HTTP/1.1 200 "));

    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::ResourceExhausted);
    let answer = plain(address, "GET /", "").await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    assert!(!answer.contains("grpc-"), "{answer}");
}

#[tokio::test]
async fn each_caller_is_answered_in_its_own_protocol() {
    let limits = sluicegate_axum::RateLimitLayer::new(TWO.by(Ip::peer()));
    each_is_refused_in_its_own_way(serve_both!(limits.store(still()).respond(Grpc::new()))).await;
}

#[tokio::test]
async fn a_guard_answers_each_caller_in_its_own_protocol() {
    let throttle = Throttle::builder().in_flight(1).queue_cost(1).build().unwrap();
    let limits = sluicegate_axum::RateLimitLayer::new(TWO.by(Ip::peer()));
    let limits = limits.store(still()).respond(Grpc::new());
    each_is_refused_in_its_own_way(serve_both!(Guard::new(limits, throttle.layer()))).await;
}
