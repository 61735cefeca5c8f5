//! Budgets of tokens: limits for services in front of large language models.
//!
//! What such a request costs is known when its answer has been streamed. So a number of tokens is reserved first, and
//! settled at the end of the body by what was used:
//!
//! 1. An [`Estimate`] reads the request's body and leaves [`EstimatedTokens`] in the request's extensions.
//! 2. [`tokens`] charges them to the limits, which refuse, or reserve them.
//! 3. A [`UsageReader`] reads the response's body as it passes, and reports to [`TokenUsage`] in the response's
//!    extensions. A handler that knows its usage itself reports there too.
//! 4. [`By::settle_tokens`](crate::rule::By::settle_tokens) replaces the reservation by what was used.
//!
//! The adapters do the first and the third step: `EstimateLayer` and `UsageLayer` for tower and axum.
//!
//! ```
//! use sluicegate::cost::llm::{Count, tokens};
//! use sluicegate::limit::Limits;
//! use sluicegate::{Claim, Limit};
//!
//! // For each API key: 500 requests a minute, 200,000 tokens a minute, 2,000,000 tokens a day.
//! let key = Claim("api_key");
//! let requests = Limit::per_minute(500).named("requests");
//! let budgets = Limits::from([
//!     Limit::per_minute(200_000).named("tokens"),
//!     Limit::per_day(2_000_000).named("tokens-a-day"),
//! ]);
//! let rule = (requests.by(key), budgets.by(key).cost(tokens(Count::All)).settle_tokens(Count::All));
//! # let _ = rule;
//! ```

mod estimate;
mod estimated;
mod json;
pub(crate) mod passing;
mod reader;
pub(crate) mod settle;
mod sse;
pub(crate) mod usage;

pub use self::estimate::{Estimate, EstimateReader};
pub use self::estimated::{EstimatedTokens, Tokens, tokens};
pub use self::reader::{Media, UsageReader};
pub use self::usage::{Count, TokenUsage, Usage};
