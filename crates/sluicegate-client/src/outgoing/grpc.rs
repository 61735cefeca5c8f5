//! What the header of a call of gRPC says.

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, header};
use sluicegate::adapter::grpc::response_type;
use sluicegate_throttle::grpc_timeout;

pub(crate) static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Whether a request or a response is one of gRPC or gRPC-Web.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| response_type(kind.as_bytes()).is_some())
}

/// How long the caller waits, as the request states it.
pub(super) fn stated(headers: &HeaderMap) -> Option<Duration> {
    grpc_timeout::read(headers.get(&TIMEOUT)?.to_str().ok()?)
}

/// States that the caller waits for `left`, where the request states a longer time.
pub(super) fn shorten(headers: &mut HeaderMap, left: Duration) {
    if stated(headers).is_some_and(|stated| stated > left) {
        headers.insert(&TIMEOUT, timeout(left));
    }
}

/// The value for a time.
pub(crate) fn timeout(time: Duration) -> HeaderValue {
    HeaderValue::try_from(grpc_timeout::write(time)).unwrap_or(HeaderValue::from_static("0m"))
}
