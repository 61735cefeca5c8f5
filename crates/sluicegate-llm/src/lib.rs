//! Budgets of tokens: limits for services in front of large language models.
//!
//! What such a request costs is known when its answer has been streamed. So a number of tokens is reserved first, and
//! settled at the end of the body by what was used:
//!
//! 1. An [`Estimate`] reads the request's body and leaves [`EstimatedTokens`] in the request's extensions.
//! 2. [`tokens`] charges them to the limits, which refuse, or reserve them.
//! 3. A [`UsageReader`] reads the response's body as it passes, and reports to a [`TokenUsage`] whose cost is in the
//!    response's extensions. A handler that knows its usage itself reports there too.
//! 4. [`used_tokens`] replaces the reservation by what was used.
//!
//! [`EstimateLayer`] and [`UsageLayer`] do the first and the third step. A [`Dialect`] writes the header fields and the errors
//! of OpenAI's or Anthropic's API. The page [Tokens](https://docs.rs/sluicegate/latest/sluicegate/guide/tokens/) of the guide
//! shows all of it together.
//!
//! ```
//! use sluicegate::limit::Limits;
//! use sluicegate::{Claim, Limit};
//! use sluicegate_llm::{Count, tokens, used_tokens};
//!
//! // For each API key: 500 requests a minute, 200,000 tokens a minute, 2,000,000 tokens a day.
//! let key = Claim("api_key");
//! let requests = Limit::per_minute(500).named("requests");
//! let budgets = Limits::from([
//!     Limit::per_minute(200_000).named("tokens"),
//!     Limit::per_day(2_000_000).named("tokens-a-day"),
//! ]);
//! let budgets = budgets.by(key).cost(tokens(Count::All)).settle_by(used_tokens(Count::All));
//! let rule = (requests.by(key), budgets);
//! # let _ = rule;
//! ```
//!
//! # Features
//!
//! - `tower` (on by default): the layers for tower and axum, and a [`Dialect`] as a responder.
//! - `actix`: the layers for actix-web.
//!
//! Both compile the reference implementation of zstd, which needs a C compiler.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod dialect;
mod estimate;
mod json;
#[cfg(any(feature = "actix", feature = "tower"))]
mod layer;
mod tokens;
mod usage;

#[cfg(feature = "actix")]
pub mod actix;
#[cfg(feature = "tower")]
pub mod tower;

pub use self::answer::{Media, UsageReader};
pub use self::dialect::{Dialect, Unit};
pub use self::estimate::{Estimate, EstimateReader};
#[cfg(any(feature = "actix", feature = "tower"))]
pub use self::layer::{EstimateLayer, UsageLayer};
pub use self::tokens::{EstimatedTokens, Tokens, UsedTokens, tokens, used_tokens};
pub use self::usage::{Count, TokenUsage, Usage};
