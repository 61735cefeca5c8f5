//! Observation: what operators see of decisions, as counts, metrics, events and spans.
//!
//! [`Counts`] need no feature. The features `metrics` and `tracing` add metrics and events. [`Watch`] lists the keys
//! that are refused most.
//!
//! ```
//! use sluicegate::observe::Watch;
//! use sluicegate::{Ip, Limit, RateLimitLayer};
//!
//! let watch = Watch::new(100);
//! let layer = RateLimitLayer::new(Limit::per_minute(100).by(Ip::peer())).watch(&watch);
//! # let _ = layer;
//! ```

pub(crate) mod by_policy;
pub(crate) mod counts;
pub(crate) mod meter;
pub(crate) mod observer;
pub(crate) mod peaks;
pub(crate) mod report;
pub(crate) mod show;
mod store_counters;
pub(crate) mod watch;

pub use self::counts::Counts;
pub use self::peaks::PeakStep;
pub use self::peaks::by_limit::LimitPeaks;
pub use self::show::ShowKeys;
pub use self::watch::{MostRefused, RefusedKey, Watch};
