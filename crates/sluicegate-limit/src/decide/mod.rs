//! One decision over several limits: charged all or none.
//!
//! Limits are asked in turn until none moves the moment of admission, for at most 16 rounds.
//!
//! A request that waits must not shut others out of what they share. A request that one limit holds back
//! books its places in all other limits at that moment, and the debt of a bucket cannot begin in the
//! future: it is booked as if the bucket idled until then. On one key, that shuts out only clients who
//! would wait anyway. Where a request is charged to several keys (the limit of a customer, and one for all
//! customers), a place is booked ahead only if it takes at most half of the shared bucket from the others,
//! and none of a shared window. Otherwise the request is refused.

mod agree;
mod attempt;
mod refusal;

use alloc::vec::Vec;
use core::time::Duration;

use self::agree::earliest_leave;
pub use self::attempt::Attempt;
use self::attempt::Others;
use self::refusal::refusal;
use super::earliest::StepResult;
use super::exact::bounded;
use super::keys::Keys;
use super::outcome::{LimitOutcome, Outcome, PlainOutcome, Role};
use super::state::{Receipt, State};
use super::verdict::Verdict;

/// Charges every attempt or none at `now`, in microseconds since the Unix epoch. If they do not all admit at once,
/// books the earliest moment within `patience` at which they all do. Without patience, a request still waits in a leaky
/// bucket's own queue. With patience, it never waits longer than that queue allows.
///
/// This is how every store in a process decides. The attempts' states must belong to different rows.
pub fn decide(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Outcome {
    if let ([attempt], None) = (&mut *attempts, patience) {
        if attempt.limit.is_plain() {
            let now = bounded(now);
            attempt.limit.follow(attempt.state, now);
            let result = attempt.limit.step(attempt.state.words, now, attempt.cost);
            let before = attempt.state.words;
            if let StepResult::Admit { words, .. } = result {
                attempt.state.words = words;
            }
            return PlainOutcome::new(result, before, now).into();
        }
    }
    let mut limits = Vec::with_capacity(attempts.len());
    let verdict =
        decide_each(attempts, now, patience, keys, |_, limit_outcome| limits.push(limit_outcome));
    Outcome::new(verdict, limits)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// [`decide`], handing out each attempt's limit_outcome: nothing is allocated.
pub(super) fn decide_each<'a>(
    attempts: &mut [Attempt<'a>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
    mut each: impl FnMut(&Attempt<'a>, LimitOutcome),
) -> Verdict {
    let now = bounded(now);
    for attempt in attempts.iter_mut() {
        attempt.limit.tidy(attempt.state, now);
    }
    let patience = patience.map(micros);
    let Some(wait) = earliest_leave(attempts, now, patience, keys) else {
        return refusal(attempts, now, patience, keys, true, each);
    };
    for attempt in attempts {
        let limit_outcome = match attempt.limit.is_shadow() {
            true => attempt.in_shadow(now, Others::Admit, true),
            false => {
                let receipt = attempt.limit.spend(attempt.state, now, attempt.cost, wait);
                attempt.limit_outcome(now, receipt, Role::Charged)
            }
        };
        each(attempt, limit_outcome);
    }
    Verdict::Admit { wait: Duration::from_micros(wait) }
}

/// Whether [`decide`] would admit, without spending anything or recording a refusal.
pub fn would_admit(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> bool {
    let now = bounded(now);
    for attempt in attempts.iter_mut() {
        attempt.limit.tidy(attempt.state, now);
    }
    earliest_leave(attempts, now, patience.map(micros), keys).is_some()
}

/// What [`decide`] would answer to a request with this patience. Spends nothing, records no refusal, and leaves the
/// states as they are.
pub fn preview(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Outcome {
    let now = bounded(now);
    let before: Vec<_> = attempts.iter_mut().map(|attempt| attempt.look(now)).collect();
    let patience = patience.map(micros);
    let mut limits = Vec::with_capacity(attempts.len());
    let verdict = match earliest_leave(attempts, now, patience, keys) {
        None => refusal(attempts, now, patience, keys, false, |_, limit_outcome| {
            limits.push(limit_outcome);
        }),
        Some(wait) => {
            limits.extend(attempts.iter_mut().map(|attempt| match attempt.limit.is_shadow() {
                true => attempt.in_shadow(now, Others::Admit, false),
                false => attempt.limit_outcome(now, Receipt::default(), Role::Asked),
            }));
            Verdict::Admit { wait: Duration::from_micros(wait) }
        }
    };
    for (attempt, before) in attempts.iter_mut().zip(before) {
        let log = attempt.state.log.take();
        *attempt.state = State { log, ..before };
    }
    Outcome::new(verdict, limits)
}
