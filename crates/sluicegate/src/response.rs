//! Responses: what is sent instead of, or around, the response of the service.
//!
//! [`Problem`] answers refused requests with a problem document (RFC 9457) and is the default. [`Bare`] answers
//! with the status alone. [`Respond`] is the trait behind them.
//!
//! ```
//! use sluicegate::response::Bare;
//! use sluicegate::{Ip, Limit, RateLimitLayer};
//!
//! let layer = RateLimitLayer::new(Limit::per_minute(100).by(Ip::peer())).respond(Bare);
//! # let _ = layer;
//! ```

#[doc(inline)]
pub use sluicegate_core::response::{Degraded, LazyDecision, Redirect};

pub use crate::body::Body;
pub use crate::respond::{Bare, Problem, Respond, RespondFn, TooManyFn};
