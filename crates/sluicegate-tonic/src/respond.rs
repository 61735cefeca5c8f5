use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use sluicegate::adapter::Refusal;
use sluicegate::response::{Body, Problem, Respond};

use crate::status::status;

/// Answers gRPC requests with a gRPC status, and all others as `P` does.
///
/// A request is one of gRPC if its content type is `application/grpc`, with or without a suffix such as `+proto` or
/// `-web`. The table of [statuses](crate#statuses) says what each refusal becomes. The fields that the layer adds, such
/// as `RateLimit`, become metadata.
///
/// ```
/// use sluicegate::{Ip, Limit, RateLimitLayer};
/// use sluicegate::response::Bare;
/// use sluicegate_tonic::Grpc;
///
/// // Problem documents for requests that are not gRPC.
/// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond(Grpc::new());
/// // Empty bodies for them.
/// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond(Grpc::or(Bare));
/// # let _ = layer;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Grpc<P = Problem> {
    others: P,
}

impl Grpc {
    /// Answers requests that are not gRPC with a [`Problem`] document.
    pub const fn new() -> Self {
        Self::or(Problem)
    }
}

impl<P> Grpc<P> {
    /// Answers requests that are not gRPC by `others`.
    pub const fn or(others: P) -> Self {
        Self { others }
    }
}

impl<B, ResBody, P> Respond<B, ResBody> for Grpc<P>
where
    P: Respond<B, ResBody>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        let Some(content_type) = grpc_type(request) else {
            return self.others.respond(refusal, request);
        };
        let mut response = status(refusal).into_http();
        // gRPC-Web is answered in its own type.
        response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
        response
    }

    fn redirects(&self, request: &Request<B>) -> bool {
        grpc_type(request).is_none() && self.others.redirects(request)
    }
}

/// The content type of a request that is one of gRPC.
fn grpc_type<B>(request: &Request<B>) -> Option<&HeaderValue> {
    let content_type = request.headers().get(CONTENT_TYPE)?;
    let (named, rest) = content_type.as_bytes().split_at_checked(GRPC.len())?;
    let ends = matches!(rest.first(), None | Some(b'+' | b';' | b'-' | b' '));
    (named.eq_ignore_ascii_case(GRPC.as_bytes()) && ends).then_some(content_type)
}

const GRPC: &str = "application/grpc";

#[cfg(test)]
mod tests {
    use super::*;

    fn is_grpc(content_type: &str) -> bool {
        let request = Request::builder().header(CONTENT_TYPE, content_type).body(()).unwrap();
        grpc_type(&request).is_some()
    }

    #[test]
    fn a_request_of_grpc_is_known_by_its_content_type() {
        for content_type in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC+json",
            "application/grpc; charset=utf-8",
            "application/grpc-web",
            "application/grpc-web-text+proto",
        ] {
            assert!(is_grpc(content_type), "{content_type}");
        }
        for content_type in
            ["application/grpcx", "application/json", "text/grpc", "application/gr", ""]
        {
            assert!(!is_grpc(content_type), "{content_type}");
        }
        assert!(grpc_type(&Request::new(())).is_none());
    }
}
