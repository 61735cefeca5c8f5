use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use sluicegate_core::adapter::{Refusal, fields};

use crate::body::Body;
use crate::view::{FrameworkAnswer, Plain};

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

    /// Whether the client of `request` follows redirects. Where it does not, it is refused like others, although a policy
    /// would send the client elsewhere.
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

/// The response of another responder, or a [`Problem`] if there is none.
impl<B, ResBody, P: Respond<B, ResBody>> Respond<B, ResBody> for Option<P> {
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        match self {
            Some(respond) => respond.respond(refusal, request),
            None => Problem.respond(refusal, request),
        }
    }

    fn redirects(&self, request: &Request<B>) -> bool {
        self.as_ref().is_none_or(|respond| respond.redirects(request))
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

/// A closure that makes the whole response, of the type that the framework `W` asks for: with the body of the service
/// inside or with a [`Body`].
pub struct RespondFn<F, W = Plain> {
    respond: F,
    framework: PhantomData<fn() -> W>,
}

impl<F> RespondFn<F> {
    /// A closure that returns an [`http::Response`].
    pub const fn new(respond: F) -> Self {
        Self::of_framework(respond)
    }
}

impl<F, W> RespondFn<F, W> {
    /// A closure that returns what a framework makes a response of.
    pub(crate) const fn of_framework(respond: F) -> Self {
        Self { respond, framework: PhantomData }
    }
}

impl<B, ResBody, F, T, W> Respond<B, ResBody> for RespondFn<F, W>
where
    F: Fn(&Refusal, &Request<B>) -> T,
    W: FrameworkAnswer<T, ResBody>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        W::answer((self.respond)(refusal, request))
    }
}

impl<F: Clone, W> Clone for RespondFn<F, W> {
    fn clone(&self) -> Self {
        Self::of_framework(self.respond.clone())
    }
}

impl<F, W> fmt::Debug for RespondFn<F, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RespondFn")
    }
}

/// A [`Respond`] for requests that exceed a limit, and another one for all other refusals.
#[derive(Debug, Clone, Copy)]
pub struct TooManyFn<Q, P> {
    too_many: Q,
    others: P,
}

impl<Q, P> TooManyFn<Q, P> {
    /// Lets `too_many` answer [`Refusal::TooMany`], and `others` all else.
    pub const fn new(too_many: Q, others: P) -> Self {
        Self { too_many, others }
    }
}

impl<B, ResBody, Q, P> Respond<B, ResBody> for TooManyFn<Q, P>
where
    Q: Respond<B, ResBody>,
    P: Respond<B, ResBody>,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<Body<ResBody>> {
        match refusal {
            Refusal::TooMany(_) => self.too_many.respond(refusal, request),
            _ => self.others.respond(refusal, request),
        }
    }
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
}
