use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use tollgate_core::{Refusal, fields};

/// Makes the response of a refusal.
///
/// [`Problem`] is the default; [`Bare`] has no body, for body types that cannot be made from text;
/// [`RespondFn`] holds a closure that sees the request. Whatever it makes, the layer adds
/// `Retry-After`, `Cache-Control: no-store` and the `RateLimit` fields.
pub trait Respond<B, ResBody> {
    /// The response to `request`, which is refused for the reason that `refusal` gives.
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<ResBody>;
}

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Copy, Default)]
pub struct Problem;

impl<B, ResBody: From<String>> Respond<B, ResBody> for Problem {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<ResBody> {
        let mut response = Response::new(ResBody::from(refusal.problem()));
        *response.status_mut() = status(refusal);
        let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// The status alone: for body types that have nothing but a default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bare;

impl<B, ResBody: Default> Respond<B, ResBody> for Bare {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<ResBody> {
        let mut response = Response::new(ResBody::default());
        *response.status_mut() = status(refusal);
        response
    }
}

/// A closure that makes the whole response.
#[derive(Clone, Copy)]
pub struct RespondFn<F>(pub F);

impl<B, ResBody, F> Respond<B, ResBody> for RespondFn<F>
where
    F: Fn(&Refusal, &Request<B>) -> Response<ResBody>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<ResBody> {
        (self.0)(refusal, request)
    }
}

impl<F> fmt::Debug for RespondFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RespondFn")
    }
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
}
