//! `/v1/status`: the state of the server, for the dashboard, `sluicegate top` and scripts; `/v1/peaks`: whom another limit would
//! refuse; `/rlconfig`: the limits in force,
//! as text; `/stats`: the statistics under the names of Envoy's service, as text.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::task::JoinError;
use utoipa::OpenApi;

use crate::rls::Statistics;
use crate::status::{Dashboard, PeaksStatus, Status};

#[derive(OpenApi)]
#[openapi(
    info(title = "sluicegate admin", description = "The state of a sluicegate server."),
    paths(status, clients)
)]
struct Api;

/// The description of the admin port's API, in OpenAPI 3.1.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// `GET /v1/status`, `GET /v1/peaks`, `GET /v1/openapi.json`, `GET /rlconfig`, and `GET /stats` if there are statistics.
pub(crate) fn routes(dashboard: &Dashboard, statistics: Option<&Statistics>) -> Router {
    let statistics = statistics
        .cloned()
        .map(|statistics| Router::new().route("/stats", get(async move || statistics.text())));
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/peaks", get(clients))
        .route("/v1/openapi.json", get(async || Json(openapi())))
        .route("/rlconfig", get(limits))
        .with_state(dashboard.clone())
        .merge(statistics.unwrap_or_default())
}

/// The state of the server.
#[utoipa::path(get, path = "/v1/status", responses(
    (status = 200, description = "The state of the server.", body = Status),
    (status = 401, description = "The server has a token, and the request does not present it."),
))]
async fn status(State(dashboard): State<Dashboard>) -> Response {
    // Files are read.
    answer(tokio::task::spawn_blocking(move || dashboard.status()).await)
}

/// Whom another limit would refuse.
#[utoipa::path(get, path = "/v1/peaks", responses(
    (status = 200, description = "The limits that have decided, each with its keys by their highest counts.", body = Vec<PeaksStatus>),
    (status = 401, description = "The server has a token, and the request does not present it."),
))]
async fn clients(State(dashboard): State<Dashboard>) -> Response {
    // Thousands of keys are looked at.
    answer(tokio::task::spawn_blocking(move || dashboard.peaks()).await)
}

fn answer(read: Result<impl Serialize, JoinError>) -> Response {
    match read {
        Ok(read) => {
            let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (no_store, Json(read)).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn limits(State(dashboard): State<Dashboard>) -> String {
    let mut text = dashboard.policies().describe().join("\n");
    text.push('\n');
    text
}
