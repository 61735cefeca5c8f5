//! Layers of one throttle around an app and around one of its routes.

use std::time::Duration;

use actix_web::{App, test, web};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use sluicegate_throttle::Throttle;
use tower::ServiceExt;

fn one_at_a_time() -> Throttle {
    Throttle::builder().in_flight(1).queue(Duration::from_millis(200)).build().unwrap()
}

fn assert_counted_once(throttle: &Throttle) {
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.counts.offered, snapshot.counts.started, snapshot.running), (1, 1, 0));
}

#[actix_web::test]
async fn a_request_passes_two_layers_of_one_throttle_in_axum() {
    let throttle = one_at_a_time();
    let inside = Router::new().route("/", get(async || "hello")).layer(throttle.layer());
    let app = Router::new().merge(inside).layer(throttle.layer());
    let request = Request::get("/").body(Body::empty()).unwrap();
    let response = tokio::time::timeout(Duration::from_secs(20), app.oneshot(request));
    let response = response.await.expect("it waits for itself").unwrap();
    assert_eq!(response.status(), 200);
    drop(response);
    assert_counted_once(&throttle);
}

#[actix_web::test]
async fn a_request_passes_two_layers_of_one_throttle_in_actix_web() {
    let throttle = one_at_a_time();
    let hello = web::resource("/").wrap(throttle.layer()).to(async || "hello");
    let app = test::init_service(App::new().service(hello).wrap(throttle.layer())).await;
    let request = test::TestRequest::get().uri("/").to_request();
    let response = tokio::time::timeout(Duration::from_secs(20), test::call_service(&app, request));
    let response = response.await.expect("it waits for itself");
    assert_eq!(test::read_body(response).await, "hello");
    assert_counted_once(&throttle);
}
