//! Rules: which limits a request is charged to, by which key, and at what cost.
//!
//! [`Limit::by`](crate::Limit::by) makes a rule of one limit. A tuple of rules is a rule: a request is charged to
//! all of them or to none. [`when`] chooses between limits by a condition, [`Tiers`] by customer.
//!
//! ```
//! use sluicegate::{Global, Ip, Limit};
//!
//! // At most 100 a minute for each address, and 5,000 for all addresses together.
//! let rules = (Limit::per_minute(100).by(Ip::peer()), Limit::per_minute(5_000).by(Global));
//! # let _ = rules;
//! ```

mod by;
pub(crate) mod cases;
mod choose;
mod contract;
mod row_sharing;
pub(crate) mod tiers;
mod when;

pub use self::by::By;
pub use self::cases::{Cases, CasesBuilder, Conditions, when};
pub use self::choose::{Chosen, choose};
pub use self::contract::{KnownLimits, LimitsFor, Rule, RuleFn, rule_fn};
pub use self::tiers::{ByTier, TierError, Tiers, TiersBuilder};
pub use self::when::When;

#[cfg(test)]
mod tests;
