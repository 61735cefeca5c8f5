//! Services and futures that the layers make.
//!
//! Their names are needed where a type has to be written down.

pub use crate::boxed::{BoxRateLimitLayer, BoxRespond, BoxRule};
pub use crate::in_flight::{
    CountUntil, Counted, InFlightFuture, InFlightLayer, InFlightLayerFor, InFlightService,
    UntilHead,
};
pub use crate::limiter::{Acquire, AcquireError, Take};
pub use crate::rate_limit::future::{HttpService, ResponseFuture};
pub use crate::rate_limit::layer::RateLimitLayerFor;
pub use crate::rate_limit::service::{RateLimit, RateLimitFor};
