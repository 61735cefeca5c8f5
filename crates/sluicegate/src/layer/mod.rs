//! The layer.
//!
//! Each framework has a `RateLimitLayer<R, S, P>` of its own, here and in the crates for axum and tonic: a struct
//! around [`LayerSettings`] whose methods are [written once](crate::adapter::layer). A framework decides what view a
//! rule has of a request and of what type the bodies of responses become. The second is a matter of types, which a
//! value in one common struct could not choose; and were it a type parameter of that struct, then users would have to
//! write it, and `RateLimitLayer::new(rule)` could not be inferred.

mod methods;
mod settings;

use sluicegate_core::Memory;
use sluicegate_core::rule::KnownLimits;

pub use self::settings::LayerSettings;
use crate::respond::Problem;
use crate::view::Plain;

/// A tower layer that limits how fast requests may pass.
///
/// The rule `R` decides what requests are charged, the store `S` keeps the counts, and `P` makes the answers to
/// refused requests.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Ip, Limit, RateLimitLayer, Rejection};
///
/// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer()))
///     .rejection(Rejection::queue(Duration::from_millis(200)));
/// # let _ = layer;
/// ```
///
/// The rule and its key make the type long. [`boxed`](Self::boxed) makes a
/// [`BoxRateLimitLayer`](crate::service::BoxRateLimitLayer), which a struct can hold and a function can return.
///
/// Clones share one store with each other and with all services that they wrap. The inner service has to be `Clone`
/// (axum's are; put a `tower::buffer::Buffer` around one that is not), because a waiting request takes along the
/// service that was made ready for it.
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

crate::__layer!("sluicegate", Plain);
crate::__respond_with!("sluicegate");
