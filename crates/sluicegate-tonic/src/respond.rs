use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Request, Response};
use sluicegate::adapter::{Refusal, grpc};
use sluicegate::response::{Body, Problem, Respond};

use crate::status::status;

/// Answers gRPC requests with a gRPC status, and all others as `P` does.
///
/// A request is one of gRPC if its content type is `application/grpc` or, for gRPC-Web, `application/grpc-web` or
/// `application/grpc-web-text`, each with or without a suffix such as `+proto`. The table of
/// [statuses](crate#statuses) says what each refusal becomes. The fields that the layer adds, such as `RateLimit`, become
/// metadata.
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
        let (status, pushback) = status(refusal);
        // As `Status::into_http` makes it, with room for every field from the beginning.
        let mut response = Response::new(Body::default());
        let headers = response.headers_mut();
        headers.reserve(FIELDS);
        status.add_header(headers).expect("its text and details are encoded");
        // gRPC-Web is answered in its own type.
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(pushback) = pushback {
            headers.insert(&PUSHBACK, pushback);
        }
        response.extensions_mut().insert(status);
        response
    }

    fn redirects(&self, request: &Request<B>) -> bool {
        grpc_type(request).is_none() && self.others.redirects(request)
    }
}

/// Room for the fields of the status and of the layer.
const FIELDS: usize = 12;

static PUSHBACK: HeaderName = HeaderName::from_static(grpc::PUSHBACK);

/// The content type of the response to a request that is one of gRPC.
fn grpc_type<B>(request: &Request<B>) -> Option<&'static str> {
    grpc::response_type(request.headers().get(CONTENT_TYPE)?.as_bytes())
}
