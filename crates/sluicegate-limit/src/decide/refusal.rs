//! Which limits refuse a request, and when it may come again.

use super::agree::{earliest_retry, longest_queue};
use super::attempt::{Attempt, Others, deciding};
use crate::earliest::Earliest;
use crate::keys::Keys;
use crate::outcome::{LimitOutcome, Role};
use crate::state::Receipt;
use crate::verdict::Verdict;

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
                let late = delay > patience.unwrap_or(0);
                late || attempt.queued(now).is_some() || !attempt.books(now, delay, keys)
            }
            (Self::Patience(_), Earliest::Unknown | Earliest::Never) => true,
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
        if refused && record {
            attempt.limit.refuse(attempt.state, now, attempt.cost);
        }
        let limit_outcome = attempt.limit_outcome(now, Receipt::default(), Role::Refused(refused));
        each(attempt, limit_outcome);
    }
    if is_never {
        return Verdict::Never;
    }
    Verdict::Refuse { retry_after: earliest_retry(attempts, now, patience, keys) }
}
