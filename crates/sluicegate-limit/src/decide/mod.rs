//! One decision over several limits: charged all or none.
//!
//! Limits are asked in turn until none moves the moment of admission, for at most 16 rounds.
//!
//! A request that waits must not shut others out of what they share. A request that one limit holds back
//! books its places in all other limits at that moment, and the debt of a bucket cannot begin in the
//! future: it is booked as if the bucket idled until then. On one key, that shuts out only clients who
//! would wait anyway. Where a request is charged to several keys (the limit of a customer, and one for all
//! customers), a place is booked ahead only if all places so booked together take at most half of a shared
//! bucket from the others, and nothing of a shared window. In a shared log it is at most half of a period ahead.
//! Otherwise the request is refused. The gap after a request is a bucket of one.

mod agree;

use alloc::vec::Vec;
use core::time::Duration;

use self::agree::{earliest_leave, earliest_retry, longest_queue};
use crate::decision::{LimitStatus, Verdict};
use crate::exact::{Earliest, bounded, micros};
use crate::limit::Limit;
use crate::outcome::{LimitOutcome, Outcome};
use crate::state::{Receipt, Role, State};

/// Whether all attempts of one decision belong to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// A request that waits for one limit only delays requests that would wait for that limit too.
    One,
    /// One limit may be shared by many keys that do not wait for another limit. A place booked far ahead must not
    /// shut them out, and is refused instead.
    Several,
}

/// A limit, the state of one key, and the cost to spend there.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The state of the key.
    pub state: &'a mut State,
    /// The cost to spend.
    pub cost: u64,
}

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
    // One plain limit and nobody waits: the step alone says everything, and nothing is allocated.
    if let ([attempt], None) = (&mut *attempts, patience) {
        if attempt.limit.plain {
            let now = bounded(now);
            attempt.limit.algorithm.tidy(attempt.state, now);
            let (step, _) = attempt.limit.algorithm.step(attempt.state.words, now, attempt.cost);
            attempt.state.words = step.words();
            return step.into();
        }
    }
    let mut limits = Vec::with_capacity(attempts.len());
    let verdict =
        decide_each(attempts, now, patience, keys, |_, limit_outcome| limits.push(limit_outcome));
    Outcome::new(verdict, limits)
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
    // All states are brought to this moment before any is asked. The rounds below ask several times, and must not
    // change what they ask.
    for attempt in attempts.iter_mut() {
        attempt.limit.tidy(attempt.state, now);
    }
    let patience = patience.map(micros);
    // Nothing is written before all limits have agreed, so a refusal has nothing to undo.
    let Some(wait) = earliest_leave(attempts, now, patience, keys) else {
        return refusal(attempts, now, patience, keys, true, each);
    };
    for attempt in attempts {
        let limit_outcome = match attempt.limit.is_shadow() {
            // Only now that the others have admitted. In force, it would not be charged for requests that another limit
            // keeps out.
            true => attempt.in_shadow(now, Others::Admit, true),
            false => {
                // Every limit is charged for the same moment, the one at which the request leaves. A window is charged
                // in the window of that moment, and not in the one of now.
                let receipt = attempt.limit.spend(attempt.state, now, attempt.cost, wait);
                attempt.limit_outcome(now, receipt, Role::Charged)
            }
        };
        each(attempt, limit_outcome);
    }
    Verdict::Admit { wait: Duration::from_micros(wait) }
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
    // Asking needs the states as a decision would find them: by the account of these numbers, after the clock.
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
        // The log was never copied, so it goes back as it is.
        let log = attempt.state.log.take();
        *attempt.state = State { log, ..before };
    }
    Outcome::new(verdict, limits)
}

/// What the limits that decide do with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Admit,
    Refuse,
}

impl Attempt<'_> {
    /// Prepares the state as a decision would, and returns the previous state. A log is left as it is, because it may
    /// be long, and its arithmetic ignores expired stamps and handles a clock that stepped back.
    pub(super) fn look(&mut self, now: u64) -> State {
        let log = self.state.log.take();
        let before = self.state.clone();
        self.limit.tidy(self.state, now);
        self.state.log = log;
        before
    }

    /// The earliest moment, `from` or more from `now`, at which the limit lets the request in.
    #[inline]
    pub(super) fn earliest(&self, now: u64, from: u64) -> Earliest {
        self.limit.earliest(self.state, now, self.cost, from)
    }

    pub(super) fn never_admits(&self, patience: Option<u64>) -> bool {
        self.limit.never_admits(self.cost, patience)
    }

    /// How long the request would wait in the limit's own queue, if it has one.
    #[inline]
    pub(super) fn queued(&self, now: u64) -> Option<u64> {
        self.limit.queued(self.state, now, self.cost)
    }

    /// The outcome of a shadow for a request that the other limits have decided. It charges the shadow if it `takes`.
    pub(super) fn in_shadow(&mut self, now: u64, others: Others, takes: bool) -> LimitOutcome {
        // A shadow does not delay anybody, so whatever it would have delayed counts as refused by it.
        let is_at_once = matches!(self.earliest(now, 0), Earliest::At(0));
        if !is_at_once || self.queued(now).is_some_and(|queued| queued > 0) {
            if takes {
                self.limit.refuse(self.state, now, self.cost);
            }
            return self.limit_outcome(
                now,
                Receipt { void: true, ..Receipt::default() },
                Role::Shadowed,
            );
        }
        match (others, takes) {
            (Others::Refuse, _) => {
                self.limit_outcome(now, Receipt::default(), Role::Refused(false))
            }
            (Others::Admit, false) => self.limit_outcome(now, Receipt::default(), Role::Asked),
            (Others::Admit, true) => {
                let receipt = self.limit.spend(self.state, now, self.cost, 0);
                self.limit_outcome(now, receipt, Role::Charged)
            }
        }
    }

    /// The status of the limit after the decision.
    fn limit_outcome(&self, now: u64, receipt: Receipt, role: Role) -> LimitOutcome {
        // The words say it all, and the rest is worked out when somebody reads it. Other states are at hand only now,
        // under the store's lock.
        if !self.limit.has_extra_state() {
            return LimitOutcome::of_words(self.state.words, now, role);
        }
        let Self { limit, state, cost } = self;
        LimitOutcome::Status(LimitStatus::of(limit, limit, state, now, receipt, role, *cost))
    }

    pub(super) fn books(&self, now: u64, wait: u64, keys: Keys) -> bool {
        self.limit.books(self.state, now, self.cost, wait, keys)
    }
}

/// The limits that decide, without shadows.
pub(super) fn deciding<'s, 'a>(
    attempts: &'s [Attempt<'a>],
) -> impl Iterator<Item = &'s Attempt<'a>> {
    attempts.iter().filter(|attempt| !attempt.limit.is_shadow())
}

/// Why a limit is one of those that refuse.
#[derive(Clone, Copy)]
enum RefusalReason {
    /// It would let the request in only after its patience has ended.
    Patience(Option<u64>),
    /// It never lets in a request with so little patience.
    Never(Option<u64>),
    /// It cannot book a place so far ahead.
    Booking(u64),
}

impl RefusalReason {
    fn refuses(self, attempt: &Attempt<'_>, now: u64, keys: Keys) -> bool {
        match (self, attempt.earliest(now, 0)) {
            (Self::Never(patience), _) => attempt.never_admits(patience),
            (Self::Booking(wait), _) => !attempt.books(now, wait, keys),
            (Self::Patience(patience), Earliest::At(0)) => {
                attempt.queued(now).is_some_and(|queued| queued > patience.unwrap_or(u64::MAX))
            }
            (Self::Patience(patience), Earliest::At(delay)) => {
                // A limit with a queue of its own lets nobody wait for room in that queue, however patient.
                let late = delay > patience.unwrap_or(0);
                late || attempt.queued(now).is_some() || !attempt.books(now, delay, keys)
            }
            (Self::Patience(_), Earliest::Unknown(_) | Earliest::Never) => true,
        }
    }
}

pub(super) fn refusal<'a>(
    attempts: &mut [Attempt<'a>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
    record: bool,
    mut each: impl FnMut(&Attempt<'a>, LimitOutcome),
) -> Verdict {
    let never = RefusalReason::Never(patience);
    // The reasons are tried from the most to the least definite. Exactly one of them is used, so that a client is told
    // of the limits that really kept it out, and not of all that were nearly full.
    let queue = longest_queue(attempts, now);
    // If the request can never get in, only those limits refuse. If the patience is long enough for each limit but they
    // find no common moment, all limits with a wait refuse. If no limit has a wait but one queue holds the request
    // back, the limits that cannot book that far refuse.
    let reasons = [
        never,
        RefusalReason::Patience(patience),
        RefusalReason::Patience(None),
        RefusalReason::Booking(queue),
    ];
    let found = |reason: &RefusalReason| {
        deciding(attempts).any(|attempt| reason.refuses(attempt, now, keys))
    };
    let reason = reasons.into_iter().find(found).unwrap_or(RefusalReason::Patience(patience));
    let is_never = matches!(reason, RefusalReason::Never(_));
    // A request that can never be admitted is not recorded as a refused attempt.
    let record = record && !is_never;
    for attempt in attempts.iter_mut() {
        if attempt.limit.is_shadow() {
            let limit_outcome = attempt.in_shadow(now, Others::Refuse, record);
            each(attempt, limit_outcome);
            continue;
        }
        let refused = reason.refuses(attempt, now, keys);
        // Only the limits that refused count the attempt. Another limit, which had room, has no reason to ban the key.
        if refused && record {
            attempt.limit.refuse(attempt.state, now, attempt.cost);
        }
        let limit_outcome = attempt.limit_outcome(now, Receipt::default(), Role::Refused(refused));
        each(attempt, limit_outcome);
    }
    if is_never {
        // No `retry_after`: a client that is told a time would come back in vain.
        return Verdict::Never;
    }
    Verdict::Refuse { retry_after: earliest_retry(attempts, now, patience, keys) }
}
