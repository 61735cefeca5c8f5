use std::fmt;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response};
use sluicegate::adapter::Refusal;
use sluicegate::response::Respond;
use sluicegate::service::RateLimitLayerFor;

use crate::Axum;

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

/// Lets refusals be answered with anything that implements [`IntoResponse`].
pub trait RespondWith: Sized {
    /// The layer with another way to answer.
    type With<F>;

    /// Makes the response of every refusal, seeing the request: also of requests without a key (400 or 500),
    /// of those that can never be admitted (413, 422) and of a store that fails (503), so begin with the
    /// refusal's own [`status`](Refusal::status).
    /// [`too_many_into_response_with`](Self::too_many_into_response_with) is for those alone that exceed a
    /// limit.
    ///
    /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
    /// `RateLimit` fields are added to it.
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode};
    /// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
    /// use sluicegate_axum::adapter::Refusal;
    /// use sluicegate_axum::response::RespondWith;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).into_response_with(
    ///     |refusal: &Refusal, request: &Request| {
    ///         let status = StatusCode::from_u16(refusal.status()).expect("a valid status");
    ///         (status, format!("{}: {status}\n", request.uri().path()))
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    fn into_response_with<F, B, T>(self, respond: F) -> Self::With<F>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse;

    /// The layer with another way to answer those that exceed a limit.
    type WithTooMany<F>;

    /// Makes the response of requests that exceed a limit, seeing the request. All other refusals are answered
    /// as before: by a problem document, unless something else was said.
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode};
    /// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
    /// use sluicegate_axum::adapter::Refusal;
    /// use sluicegate_axum::response::RespondWith;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer()))
    ///     .too_many_into_response_with(|refusal: &Refusal, _: &Request| {
    ///         let seconds = refusal.retry_after().unwrap_or(1);
    ///         (StatusCode::TOO_MANY_REQUESTS, format!("slow down: try again in {seconds} s\n"))
    ///     });
    /// # let _ = layer;
    /// ```
    fn too_many_into_response_with<F, B, T>(self, respond: F) -> Self::WithTooMany<F>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse;
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

impl<R, S, P> RespondWith for RateLimitLayerFor<R, S, Axum, P> {
    type With<F> = RateLimitLayerFor<R, S, Axum, IntoResponseFn<F>>;

    fn into_response_with<F, B, T>(self, respond: F) -> Self::With<F>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse,
    {
        self.respond(IntoResponseFn(respond))
    }

    type WithTooMany<F> = RateLimitLayerFor<R, S, Axum, TooManyIntoResponseFn<F, P>>;

    fn too_many_into_response_with<F, B, T>(self, respond: F) -> Self::WithTooMany<F>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse,
    {
        self.map_respond(|others| TooManyIntoResponseFn { respond, others })
    }
}
