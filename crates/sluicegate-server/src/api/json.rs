//! `/json`: Envoy's rate limit service for clients without gRPC, with the messages of the protocol as JSON.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};

use super::object::Object;
use super::proto_json;
use crate::admin::is_own;
use crate::rls::{Failure, answer};
use crate::service::Service;

/// The largest body, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;

/// `POST /json`: 200 if the request is within its limits, 429 if it is over one, each with the answer as JSON. 400 if
/// the request makes no sense, 415 if it is not declared as JSON, 503 if the store could not decide.
pub fn routes(service: &Service) -> Router {
    Router::new()
        .route("/json", post(decide))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(service.clone())
}

async fn decide(State(service): State<Service>, request: Request) -> Response {
    let is_declared = may_be_json(&request);
    match Bytes::from_request(request, &()).await {
        Ok(body) if is_declared => answered(&service, &body).await,
        Ok(_) => {
            let why = "expected `Content-Type: application/json`, and no page of another site\n";
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// Whether a request is declared as JSON, or not at all by a client that is no browser. A page of any site can have a
/// browser send other bodies, without being asked, to a port that only the browser can reach.
pub(super) fn may_be_json<B>(request: &HttpRequest<B>) -> bool {
    let headers = request.headers();
    let is_json = match headers.get(header::CONTENT_TYPE) {
        None => !headers.contains_key(header::ORIGIN),
        Some(kind) => is_json(kind.as_bytes()),
    };
    is_json && is_own(request)
}

/// Whether a content type is JSON, as axum reads it.
fn is_json(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let Some((start, subtype)) = essence.split_at_checked(b"application/".len()) else {
        return false;
    };
    let suffix = subtype.len().checked_sub(b"+json".len()).map(|at| &subtype[at..]);
    start.eq_ignore_ascii_case(b"application/")
        && (subtype.eq_ignore_ascii_case(b"json")
            || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json")))
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
