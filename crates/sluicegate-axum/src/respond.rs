use std::fmt;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response};
use sluicegate::adapter::Refusal;
use sluicegate::response::Respond;

use crate::layer::RateLimitLayer;

/// A closure that makes the whole response of a refusal from anything that axum can respond with.
#[derive(Clone, Copy)]
pub struct IntoResponseFn<F>(F);

impl<B, F, T> Respond<B, Body> for IntoResponseFn<F>
where
    F: Fn(&Refusal, &Request<B>) -> T,
    T: IntoResponse,
{
    fn respond(
        &self,
        refusal: &Refusal,
        request: &Request<B>,
    ) -> Response<sluicegate::response::Body<Body>> {
        (self.0)(refusal, request).into_response().map(sluicegate::response::Body::new)
    }
}

impl<F> fmt::Debug for IntoResponseFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IntoResponseFn")
    }
}

/// A closure that makes the response of requests that exceed a limit from anything that axum can respond
/// with; another [`Respond`] makes the others.
#[derive(Clone, Copy)]
pub struct TooManyIntoResponseFn<F, P> {
    respond: F,
    others: P,
}

impl<B, F, T, P> Respond<B, Body> for TooManyIntoResponseFn<F, P>
where
    F: Fn(&Refusal, &Request<B>) -> T,
    T: IntoResponse,
    P: Respond<B, Body>,
{
    fn respond(
        &self,
        refusal: &Refusal,
        request: &Request<B>,
    ) -> Response<sluicegate::response::Body<Body>> {
        match refusal {
            Refusal::TooMany(_) => (self.respond)(refusal, request)
                .into_response()
                .map(sluicegate::response::Body::new),
            _ => self.others.respond(refusal, request),
        }
    }
}

impl<F, P: fmt::Debug> fmt::Debug for TooManyIntoResponseFn<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TooManyIntoResponseFn")
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

impl<R, S, P> RateLimitLayer<R, S, P> {
    /// Makes the response of every refusal, from anything that implements [`IntoResponse`]; the closure gets the
    /// request. This includes requests without a key (400 or 500), requests that can never be admitted (413, 422) and
    /// a failing store (503), so begin with the refusal's own [`status`](Refusal::status).
    /// [`respond_to_too_many`](Self::respond_to_too_many) is only for requests that exceed a limit.
    ///
    /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
    /// `RateLimit` fields are added to it.
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode};
    /// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
    /// use sluicegate_axum::adapter::Refusal;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_with(
    ///     |refusal: &Refusal, request: &Request| {
    ///         let status = StatusCode::from_u16(refusal.status()).expect("a valid status");
    ///         (status, format!("{}: {status}\n", request.uri().path()))
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    ///
    /// Around a service whose bodies are not [`axum::body::Body`], use [`respond`](Self::respond) with a
    /// [`RespondFn`](crate::response::RespondFn).
    pub fn respond_with<F, B, T>(self, respond: F) -> RateLimitLayer<R, S, IntoResponseFn<F>>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse,
    {
        self.respond(IntoResponseFn(respond))
    }

    /// Makes the response of requests that exceed a limit, from anything that implements [`IntoResponse`]; the
    /// closure gets the request. All other refusals are answered as before: by a problem document, or by
    /// [`respond`](Self::respond).
    ///
    /// The same fields are added as by [`respond_with`](Self::respond_with).
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode};
    /// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
    /// use sluicegate_axum::adapter::Refusal;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer()))
    ///     .respond_to_too_many(|refusal: &Refusal, _: &Request| {
    ///         let seconds = refusal.retry_after().unwrap_or(1);
    ///         (StatusCode::TOO_MANY_REQUESTS, format!("slow down: try again in {seconds} s\n"))
    ///     });
    /// # let _ = layer;
    /// ```
    pub fn respond_to_too_many<F, B, T>(
        self,
        respond: F,
    ) -> RateLimitLayer<R, S, TooManyIntoResponseFn<F, P>>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse,
    {
        self.map_respond(|others| TooManyIntoResponseFn { respond, others })
    }
}
