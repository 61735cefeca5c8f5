//! Answers of the proxy itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use sluicegate::adapter::{Refused, grpc};

use crate::proxy::response_body::StackBody;

/// Marks an answer of the proxy itself, and says what is wrong.
#[derive(Clone, Copy)]
pub(crate) struct Problem(pub(crate) &'static str);

/// A problem document (RFC 9457). `detail` is ASCII that no format has to escape.
pub(crate) fn problem(status: StatusCode, detail: &'static str) -> Response<Full<Bytes>> {
    let title = status.canonical_reason().unwrap_or_default();
    let text = format!(
        "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{},\"detail\":\"{detail}\"}}",
        status.as_u16()
    );
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Problem(detail));
    response
}

/// The shortest time that `Retry-After` can say.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// The answer to a request beyond the most that the application is allowed. Requests end all the time, so the client may
/// try again [`SOON`]. The limits give back what they have charged.
pub(crate) fn full() -> Response<Full<Bytes>> {
    let why = "the application is serving as many requests as it is allowed; try again in 1 s";
    let mut response = unavailable(why);
    response.extensions_mut().insert(Refused::default());
    response
}

/// The answer to a request whose body would have to be kept beyond the room for all of them. No limit was asked.
pub(crate) fn no_room() -> Response<Full<Bytes>> {
    unavailable("the proxy is reading as many bodies as it has room for; try again in 1 s")
}

fn unavailable(why: &'static str) -> Response<Full<Bytes>> {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(SOON.as_secs()));
    response
}

// The proxy's own answers as gRPC has them.

/// Answers a call of gRPC with a status of gRPC where the proxy itself has answered with a problem document. Responses
/// of the application and of the layers pass.
///
/// It comes last, so that the layers and the access log see the status of HTTP.
pub(crate) fn for_grpc(
    response: Response<StackBody>,
    content_type: &'static str,
) -> Response<StackBody> {
    let Some(&Problem(detail)) = response.extensions().get() else { return response };
    let (mut parts, _) = response.into_parts();
    let headers = &mut parts.headers;
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(grpc::STATUS, HeaderValue::from_static(grpc_status(parts.status)));
    headers.insert(grpc::MESSAGE, HeaderValue::from_static(detail));
    if headers.contains_key(RETRY_AFTER) {
        headers.insert(grpc::PUSHBACK, grpc::pushback(SOON).into());
    }
    parts.status = StatusCode::OK;
    Response::from_parts(parts, Empty::new().map_err(|no| match no {}).boxed_unsync())
}

/// The status that clients of gRPC derive from one of HTTP (`doc/http-grpc-status-mapping.md` of gRPC).
fn grpc_status(status: StatusCode) -> &'static str {
    const UNKNOWN: &str = "2";
    const INTERNAL: &str = "13";
    const UNAVAILABLE: &str = "14";

    match status.as_u16() {
        400 => INTERNAL,
        502..=504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}
