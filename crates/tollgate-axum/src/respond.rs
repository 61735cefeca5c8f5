use std::fmt;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response};
use tollgate::{RateLimitLayerFor, Refusal, Respond};

use crate::Axum;

/// A closure that makes the whole response of a refusal from anything that axum can respond with.
#[derive(Clone, Copy)]
pub struct IntoResponseFn<F>(F);

impl<B, F, T> Respond<B, Body> for IntoResponseFn<F>
where
    F: Fn(&Refusal, &Request<B>) -> T,
    T: IntoResponse,
{
    fn respond(&self, refusal: &Refusal, request: &Request<B>) -> Response<tollgate::Body<Body>> {
        (self.0)(refusal, request).into_response().map(tollgate::Body::new)
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

    /// Makes the whole response of a refusal, seeing the request.
    ///
    /// ```
    /// use axum::{extract::Request, http::StatusCode};
    /// use tollgate_axum::{Ip, Limit, RateLimitLayer, Refusal, RespondWith};
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).into_response_with(
    ///     |refusal: &Refusal, request: &Request| {
    ///         let path = request.uri().path().to_owned();
    ///         (StatusCode::TOO_MANY_REQUESTS, format!("{path}: slow down\n"))
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    fn into_response_with<F, B, T>(self, respond: F) -> Self::With<F>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
        T: IntoResponse;
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
}
