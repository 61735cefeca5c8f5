//! The arithmetic of rate limits: how much may be spent in how much time, by which algorithm.
//!
//! A [`Limit`] is a plain value. It takes the [`State`] of a key, the time and a cost, and gives the next state and a
//! [`Decision`]. It reads no clock, keeps no counts and never fails; every intermediate is an exact integer. The crate
//! needs `alloc`, but neither `std` nor any other crate.
//!
//! Services use `sluicegate`, which adds keys, rules, stores and middleware, and re-exports what is here. This crate
//! alone is for programs that hold the states themselves: firmware, WebAssembly, or a server with a store of its own.
//!
//! ```
//! use sluicegate_limit::Limit;
//!
//! const API: Limit = Limit::per_second(3);
//!
//! let mut state = API.fresh();
//! // Microseconds, by any clock that goes forward.
//! let now = 1_700_000_000_000_000;
//!
//! assert!(API.take(&mut state, now, 3).is_admitted());
//! let refused = API.take(&mut state, now, 1);
//! assert_eq!(refused.retry_after().unwrap().as_micros(), 333_334);
//! assert!(API.take(&mut state, now + 333_334, 1).is_admitted());
//! ```
//!
//! [`decide`] decides over several limits, all or none. [`Limit`] lists the algorithms and the text form.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_limit::Limit;
//!
//! let token_bucket = Limit::per_minute(100).burst(20);
//! let leaky_bucket = Limit::leaky_bucket(10, Duration::from_secs(1)).queue(5);
//! let sliding_log = Limit::sliding_log(5, Duration::from_secs(900));
//! assert_eq!("100/minute burst 20".parse(), Ok(token_bucket));
//! # let _ = (leaky_bucket, sliding_log);
//! ```

#![cfg_attr(not(test), no_std)]
// A new algorithm is a question at each of these places.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

mod accounts;
mod algorithm;
mod bytes;
mod constructors;
mod decide;
mod decision;
mod error;
mod exact;
mod identity;
mod inline_vec;
#[doc(hidden)]
pub mod internal;
mod limit;
mod list;
mod options;
mod outcome;
mod part;
#[doc(hidden)]
pub mod remote;
mod shape;
mod state;
mod take;
mod text;
mod when_full;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::decide::{Attempt, Keys, decide, preview};
pub use self::decision::{Decision, LimitStatus, Verdict};
pub use self::error::LimitError;
pub use self::limit::{Limit, LimitName};
pub use self::list::{Limits, MAX_LIMITS};
pub use self::outcome::Outcome;
pub use self::part::Part;
pub use self::state::{Receipt, State};
pub use self::when_full::WhenFull;
