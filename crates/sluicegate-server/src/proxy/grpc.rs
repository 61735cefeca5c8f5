//! The proxy's own answers as gRPC has them.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use sluicegate::adapter::grpc;

use crate::proxy::problem::{Problem, SOON};
use crate::proxy::stack::StackBody;

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
