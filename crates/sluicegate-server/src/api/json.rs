//! `/json`: Envoy's rate limit service for clients without gRPC, with the messages of the protocol as JSON.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};

use super::object::Object;
use super::proto_json;
use crate::rls::{Failure, answer};
use crate::service::Service;

/// The largest body, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;

/// `POST /json`: 200 if the request is within its limits, 429 if it is over one, each with the answer as JSON. 400 if
/// the request makes no sense, 503 if the store could not decide.
pub fn routes(service: &Service) -> Router {
    Router::new()
        .route("/json", post(decide))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(service.clone())
}

async fn decide(State(service): State<Service>, body: Bytes) -> Response {
    answered(&service, &body).await
}

/// The answer to a request with this body.
pub(super) async fn answered(service: &Service, body: &[u8]) -> Response {
    let message: proto_json::Request = match serde_json::from_slice(body) {
        Ok(Object(message)) => message,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let request = match message.request() {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    match answer(service, &request, service.deadline()).await {
        Ok(answer) => {
            let status = match answer.is_over {
                true => StatusCode::TOO_MANY_REQUESTS,
                false => StatusCode::OK,
            };
            (status, no_store(), Json(proto_json::Response::new(&answer))).into_response()
        }
        Err(Failure::Bad(bad)) => (StatusCode::BAD_REQUEST, format!("{bad}\n")).into_response(),
        Err(Failure::Undecided(undecided)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{undecided}\n")).into_response()
        }
    }
}

/// An answer is about one moment.
fn no_store() -> HeaderMap {
    HeaderMap::from_iter([(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"))])
}
