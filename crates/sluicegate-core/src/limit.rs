//! Limits: how much may be spent in how much time, by which algorithm.
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
//!
//! They are those of the crate `sluicegate-limit`, which is the arithmetic alone and needs no `std`.

#[doc(hidden)]
pub use sluicegate_limit::remote;
#[doc(inline)]
pub use sluicegate_limit::{
    Decision, Limit, LimitError, LimitName, LimitStatus, Limits, MAX_LIMITS, Part, Verdict,
    WhenFull,
};

pub(crate) use sluicegate_limit::internal::{
    CountedIn, LimitInternals, MOST_ENTRIES, NamePiece, OutcomeInternals, Step, TokenBucket, Words,
    bounded,
};
pub(crate) use sluicegate_limit::{Attempt, Keys, Outcome, Receipt, State, decide, preview};

/// Decisions in full, for tests that look at them.
#[cfg(test)]
pub(crate) mod testing {
    use std::time::Duration;

    use super::{Attempt, Decision, Keys};

    pub(crate) fn decide(
        attempts: &mut [Attempt<'_>],
        now: u64,
        patience: Option<Duration>,
        keys: Keys,
    ) -> Decision {
        let outcome = super::decide(attempts, now, patience, keys);
        outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)))
    }

    pub(crate) fn preview(attempts: &mut [Attempt<'_>], now: u64, keys: Keys) -> Decision {
        let outcome = super::preview(attempts, now, None, keys);
        outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)))
    }
}
