//! The layers around and inside a rate limit that counts tokens of language models.

mod estimate;
mod read_body;
mod usage;
mod watched;

pub use self::estimate::{EstimateFuture, EstimateLayer, EstimateService};
pub use self::read_body::ReadBody;
pub use self::usage::{UsageFuture, UsageLayer, UsageService};
pub use self::watched::WatchedBody;
