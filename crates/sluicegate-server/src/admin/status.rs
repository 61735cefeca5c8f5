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
use crate::service::Service;
use crate::status::{PeaksStatus, Status, peaks};

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

/// `GET /v1/status`, `GET /v1/peaks`, `GET /v1/openapi.json`, `GET /rlconfig` and `GET /stats`.
pub(crate) fn routes(service: &Service) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/peaks", get(clients))
        .route("/v1/openapi.json", get(async || Json(openapi())))
        .route("/rlconfig", get(limits))
        .route("/stats", get(statistics))
        .with_state(service.clone())
}

/// The state of the server.
#[utoipa::path(get, path = "/v1/status", responses(
    (status = 200, description = "The state of the server.", body = Status),
    (status = 401, description = "The server has a token, and the request does not present it."),
))]
async fn status(State(service): State<Service>) -> Response {
    // Files are read.
    let read = move || {
        let watch = service.observer().watch.as_ref();
        let status = service.dashboard().status(service.policies(), watch);
        Status {
            stopping: service.is_stopping(),
            failed_calls: service.health().failed_calls(),
            ..status
        }
    };
    answer(tokio::task::spawn_blocking(read).await)
}

/// Whom another limit would refuse.
#[utoipa::path(get, path = "/v1/peaks", responses(
    (status = 200, description = "The limits that have decided, each with its keys by their highest counts.", body = Vec<PeaksStatus>),
    (status = 401, description = "The server has a token, and the request does not present it."),
))]
async fn clients(State(service): State<Service>) -> Response {
    // Thousands of keys are looked at.
    let read = move || peaks(service.observer().watch.as_ref());
    answer(tokio::task::spawn_blocking(read).await)
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

async fn limits(State(service): State<Service>) -> String {
    let mut text = service.policies().describe().join("\n");
    text.push('\n');
    text
}

async fn statistics(State(service): State<Service>) -> Result<String, StatusCode> {
    service.statistics().map(Statistics::text).ok_or(StatusCode::NOT_FOUND)
}
