//! The middleware around and inside a rate limit that counts tokens of language models.

mod estimate;
mod usage;
mod watched;

pub use self::estimate::{EstimateMiddleware, EstimateService};
pub use self::usage::{UsageFuture, UsageMiddleware, UsageService};
pub use self::watched::WatchedBody;
