use sluicegate::Memory;
use sluicegate::adapter::LayerSettings;
use sluicegate::response::Problem;
use sluicegate::rule::KnownLimits;

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
/// The rule and its key make the type long. [`boxed`](Self::boxed) makes a
/// [`BoxRateLimitLayer`](crate::service::BoxRateLimitLayer), which a struct can hold and a function can return.
///
/// Clones share one store with each other and with all services that they wrap.
#[must_use]
#[derive(Clone)]
pub struct RateLimitLayer<R, S = Memory, P = Problem>(LayerSettings<R, S, P>);

impl<R: KnownLimits> RateLimitLayer<R> {
    /// Limits requests by `rule`, counted in the memory of this process.
    ///
    /// # Panics
    ///
    /// When a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(rule: R) -> Self {
        Self(LayerSettings::new(rule, Problem))
    }
}

sluicegate::adapter::layer!("sluicegate_axum", Axum);
