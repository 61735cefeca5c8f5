//! `/rlconfig`: the limits in force, as text.

use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::service::Service;

/// `GET /rlconfig`.
pub(crate) fn routes(service: &Service) -> Router {
    Router::new().route("/rlconfig", get(show)).with_state(service.clone())
}

async fn show(State(service): State<Service>) -> String {
    let mut text = service.policies().describe().join("\n");
    text.push('\n');
    text
}
