//! Answers of the proxy itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use sluicegate::adapter::Refused;

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
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(SOON.as_secs()));
    response.extensions_mut().insert(Refused);
    response
}
