//! Health for orchestrators and load balancers.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use crate::service::Service;

/// `/healthz`, 200 as long as the process serves; `/readyz` and `/healthcheck`, 503 once it is about to stop. A store that
/// is away makes none of them fail: then the service answers as it was told to.
pub fn routes(service: &Service) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/healthcheck", get(ready))
        .route("/readyz", get(ready))
        .with_state(service.clone())
}

async fn ready(State(service): State<Service>) -> (StatusCode, &'static str) {
    match service.is_stopping() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        false => (StatusCode::OK, "ok\n"),
    }
}
