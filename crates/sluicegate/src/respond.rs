use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use sluicegate_core::adapter::{Refusal, fields};
use sluicegate_core::response::Dialect;

use crate::body::Body;

/// Makes the response of a refusal.
///
/// [`Problem`] is the default; [`Bare`] has no body; [`RespondFn`] holds a closure that sees the request.
/// Whatever it makes, the layer adds `Retry-After`, `Cache-Control: no-store` and the `RateLimit` fields.
///
/// `ResBody` is the body of the service inside. A responder need not be able to make one:
/// [`Body::from_bytes`] goes with every service.
#[diagnostic::on_unimplemented(
    message = "`{Self}` makes no responses for a service with bodies of the type `{ResBody}`",
    label = "not a responder for this service",
    note = "`respond_with(|refusal, request| ..)` returns a response with that body, or with `Body::from_bytes(..)`"
)]
pub trait Respond<B, ResBody> {
    /// The response to `request`, which is refused for the reason that `refusal` gives.
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>>;

    /// Whether the client of `request` follows redirects. Where it does not, the layer leaves the status of the response
    /// as it is, although a policy would send the client elsewhere.
    fn redirects(&self, request: &Request<B>) -> bool {
        let _ = request;
        true
    }
}

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Copy, Default)]
pub struct Problem;

impl<B, ResBody> Respond<B, ResBody> for Problem {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<Body<ResBody>> {
        let mut response =
            Response::new(Body::from_bytes(refusal.read_problem(Bytes::copy_from_slice)));
        *response.status_mut() = status(refusal);
        let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// An error in the form of OpenAI's or Anthropic's API; see [`Dialect::error_body`].
impl<B, ResBody> Respond<B, ResBody> for Dialect {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<Body<ResBody>> {
        let mut response = Response::new(Body::from_bytes(self.error_body(refusal)));
        *response.status_mut() = status(refusal);
        let content_type = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// An error in the form of the dialect, or a [`Problem`] if there is none.
impl<B, ResBody> Respond<B, ResBody> for Option<Dialect> {
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        match self {
            Some(dialect) => dialect.respond(refusal, request),
            None => Problem.respond(refusal, request),
        }
    }
}

/// The status alone, without a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bare;

impl<B, ResBody> Respond<B, ResBody> for Bare {
    fn respond(&self, refusal: &Refusal, _: &Request<B>) -> Response<Body<ResBody>> {
        let mut response = Response::new(Body::default());
        *response.status_mut() = status(refusal);
        response
    }
}

/// A closure that makes the whole response, with the body of the service inside or with a [`Body`].
#[derive(Clone, Copy)]
pub struct RespondFn<F>(pub F);

impl<B, ResBody, F, T> Respond<B, ResBody> for RespondFn<F>
where
    F: Fn(&Refusal, &Request<B>) -> Response<T>,
    T: Into<Body<ResBody>>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        (self.0)(refusal, request).map(Into::into)
    }
}

impl<F> fmt::Debug for RespondFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RespondFn")
    }
}

/// A closure that makes the response of requests that exceed a limit; another [`Respond`] makes the others.
#[derive(Clone, Copy)]
pub struct TooManyFn<F, P> {
    respond: F,
    others: P,
}

impl<F, P> TooManyFn<F, P> {
    /// Lets `respond` answer [`Refusal::TooMany`], and `others` all else.
    pub fn new(respond: F, others: P) -> Self {
        Self { respond, others }
    }
}

impl<B, ResBody, F, T, P> Respond<B, ResBody> for TooManyFn<F, P>
where
    F: Fn(&Refusal, &Request<B>) -> Response<T>,
    T: Into<Body<ResBody>>,
    P: Respond<B, ResBody>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        match refusal {
            Refusal::TooMany(_) => (self.respond)(refusal, request).map(Into::into),
            _ => self.others.respond(refusal, request),
        }
    }
}

impl<F, P: fmt::Debug> fmt::Debug for TooManyFn<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TooManyFn").field("others", &self.others).finish_non_exhaustive()
    }
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
}
