use sluicegate::Memory;
use sluicegate::response::Problem;
use sluicegate::service::RateLimitLayerFor;

use crate::framework::Axum;

/// A tower layer that limits how fast requests may pass an axum router or route.
///
/// The rule `R` decides what requests are charged, the store `S` keeps the counts, and `P` makes the answers to
/// refused requests.
///
/// ```
/// use axum::{Router, routing::get};
/// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
///
/// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer()));
/// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(layer);
/// # let _ = app;
/// ```
///
/// The rule and its key make the type long. [`boxed`](crate::service::RateLimitLayerFor::boxed) makes a
/// [`BoxRateLimitLayer`](crate::service::BoxRateLimitLayer), which a struct can hold and a function can return.
///
/// Clones share one store with each other and with all services that they wrap.
///
/// # Answers of your own
///
/// What closures return may be anything that implements `IntoResponse`:
///
/// ```
/// use axum::{extract::Request, http::StatusCode};
/// use sluicegate_axum::{Ip, Limit, RateLimitLayer};
/// use sluicegate_axum::adapter::Refusal;
///
/// let limit = Limit::per_second(10).by(Ip::peer());
/// let layer = RateLimitLayer::new(limit).respond_with(|refusal: &Refusal, request: &Request| {
///     let status = StatusCode::from_u16(refusal.status()).expect("a valid status");
///     (status, format!("{}: {status}\n", request.uri().path()))
/// });
///
/// let limit = Limit::per_second(10).by(Ip::peer());
/// let layer = RateLimitLayer::new(limit).respond_to_too_many(|refusal: &Refusal, _: &Request| {
///     let seconds = refusal.retry_after().unwrap_or(1);
///     (StatusCode::TOO_MANY_REQUESTS, format!("slow down: try again in {seconds} s\n"))
/// });
/// # let _ = layer;
/// ```
///
/// Around a service whose bodies are not [`axum::body::Body`], use
/// [`respond`](crate::service::RateLimitLayerFor::respond) with a [`RespondFn`](crate::response::RespondFn).
pub type RateLimitLayer<R, S = Memory, P = Problem> = RateLimitLayerFor<R, S, P, Axum>;
