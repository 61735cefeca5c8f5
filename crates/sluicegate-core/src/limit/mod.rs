//! Limits: how much may be spent in how much time, by which algorithm. Each algorithm has a file.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate::Limit;
//!
//! let token_bucket = Limit::per_minute(100).burst(20);
//! let leaky_bucket = Limit::leaky_bucket(10, Duration::from_secs(1)).queue(5);
//! let sliding_log = Limit::sliding_log(5, Duration::from_secs(900));
//! assert_eq!("100/minute burst 20".parse(), Ok(token_bucket));
//! # let _ = (leaky_bucket, sliding_log);
//! ```

pub(crate) mod algorithm;
mod ban;
mod carry;
mod check;
mod constructors;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod definition;
mod earliest;
mod error;
mod exact;
mod follow;
mod full_store;
mod identity;
pub(crate) mod keys;
mod list;
mod name;
mod options;
pub(crate) mod outcome;
mod over;
mod part;
mod recovery;
#[doc(hidden)]
pub mod remote;
mod row_sharing;
mod schedule;
mod settle;
mod shadow;
mod share;
mod spend;
pub(crate) mod state;
mod status;
mod step;
mod storage;
mod take;
mod text;
pub(crate) mod verdict;
mod when_full;
mod words;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use self::decision::Decision;
pub use self::definition::{Limit, LimitName};
pub use self::error::LimitError;
pub use self::list::{Limits, MAX_LIMITS};
pub use self::part::Part;
pub use self::status::LimitStatus;
pub use self::verdict::Verdict;
pub use self::when_full::WhenFull;

pub(crate) use self::algorithm::sliding_log::MOST_ENTRIES;
pub(crate) use self::algorithm::token_bucket::{PlainPart, TokenBucket};
pub(crate) use self::decide::{Attempt, decide, preview, would_admit};
pub(crate) use self::earliest::StepResult;
pub(crate) use self::exact::bounded;
pub(crate) use self::keys::Keys;
pub(crate) use self::outcome::{AdmittedOutcome, CountedIn, Outcome, PlainOutcome};
pub(crate) use self::state::{Receipt, State};
pub(crate) use self::text::NamePiece;
pub(crate) use self::words::Words;
