//! The moment at which all limits of a request let it in.

use core::time::Duration;

use super::{Attempt, Keys, deciding};
use crate::exact::{Earliest, bounded};

/// How many rounds the limits get to agree on one moment. Each round moves the moment to a border or a refill of some
/// limit. Two rounds are enough for all but contrived mixtures.
const ROUNDS: usize = 16;

/// When the request leaves, if every limit lets it in within the patience or has room in its own queue. The length of
/// one limit's queue makes no other limit more patient.
pub(super) fn earliest_leave(
    attempts: &[Attempt<'_>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
) -> Option<u64> {
    // First each limit by itself: whatever refuses here refuses in every round, and most decisions end after this loop.
    let (mut wait, mut allowed) = (0, patience.unwrap_or(0));
    for attempt in deciding(attempts) {
        let Earliest::At(earliest) = attempt.earliest(now, 0) else { return None };
        let (leave, in_time) = match attempt.queued(now) {
            // The length of its queue is fixed. Patience does not make it longer.
            Some(queued) => (queued, earliest == 0 && queued <= patience.unwrap_or(u64::MAX)),
            None => (earliest, earliest <= patience.unwrap_or(0)),
        };
        if !in_time {
            return None;
        }
        wait = wait.max(leave);
        allowed = allowed.max(leave);
    }
    // The usual case: nobody has to wait, so there is no place to book.
    if wait == 0 {
        return Some(0);
    }
    for _ in 0..ROUNDS {
        let asked = wait;
        for attempt in deciding(attempts) {
            // A fixed point. The moment only ever moves later, since `earliest` never answers less than it is given, so
            // a moment that no limit moves is the earliest that suits all of them.
            let Earliest::At(leave) = attempt.earliest(now, wait) else { return None };
            wait = leave;
        }
        if wait > allowed {
            return None;
        }
        if wait == asked {
            // "May come in then" and "can book it now" are different questions: the debt of a bucket begins now, even
            // where the request leaves later. So the second is asked once, at the moment on which all agree.
            return deciding(attempts)
                .all(|attempt| attempt.books(now, wait, keys))
                .then_some(wait);
        }
    }
    None
}

/// The earliest moment at which the request is admitted, if no other request spends anything.
pub(super) fn earliest_retry(
    attempts: &[Attempt<'_>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
) -> Option<Duration> {
    let mut when = 0;
    for _ in 0..ROUNDS {
        let asked = when;
        for attempt in deciding(attempts) {
            let Earliest::At(earliest) = attempt.earliest(now, when) else { return None };
            when = earliest;
        }
        // One limit has moved the moment, so the limits before it have to be asked again.
        if when > asked {
            continue;
        }
        // A limit's own queue may hold the request back for longer than another limit can book ahead.
        let then = bounded(now + when);
        let wait = longest_queue(attempts, then);
        let too_long = wait.saturating_sub(patience.unwrap_or(u64::MAX));
        if too_long > 0 {
            // A request that would wait too long comes back when the queue is short enough. For a cost that has to wait
            // too long even in an empty queue, this loop would not end.
            when += too_long;
            continue;
        }
        if deciding(attempts).count() == 1
            || deciding(attempts).all(|attempt| attempt.books(then, wait, keys))
        {
            return Some(Duration::from_micros(when));
        }
        let empty = when + wait.saturating_sub(shortest_queue(attempts));
        if books_at(attempts, now, empty, keys) {
            // Between these two moments, the answer changes once from "no" to "yes", so it is found by halving: at most
            // 53 steps, where trying each microsecond would never end.
            return Some(Duration::from_micros(earliest_booking(
                attempts,
                now,
                keys,
                (when, empty),
            )));
        }
        // From then on, the end of the queue moves with time. It may reach a window in which places can be booked.
        let then = bounded(now + empty);
        let wait = longest_queue(attempts, then);
        let mut later = 0;
        for attempt in deciding(attempts).filter(|attempt| !attempt.books(then, wait, keys)) {
            later = later.max(attempt.limit.window_begins(attempt.state, then, wait)?);
        }
        when = empty + later;
    }
    None
}

/// The first moment at which all limits can book a place at the end of the queue. It lies after a moment at which they
/// cannot, and no later than one at which they can and the queue is as short as possible.
///
/// Until then, the end of the queue does not move, so it comes nearer as time passes. Once all limits can book, they
/// can do so at every later moment.
fn earliest_booking(
    attempts: &[Attempt<'_>],
    now: u64,
    keys: Keys,
    (mut early, mut late): (u64, u64),
) -> u64 {
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        if books_at(attempts, now, middle, keys) {
            late = middle;
        } else {
            early = middle;
        }
    }
    late
}

/// Whether all limits can book a place at the end of the queue at that moment.
fn books_at(attempts: &[Attempt<'_>], now: u64, when: u64, keys: Keys) -> bool {
    let then = bounded(now + when);
    let wait = longest_queue(attempts, then);
    deciding(attempts).all(|attempt| attempt.books(then, wait, keys))
}

/// How long the request waits in the limits' own queues if they are empty.
fn shortest_queue(attempts: &[Attempt<'_>]) -> u64 {
    deciding(attempts).map(|attempt| attempt.limit.shortest_queue(attempt.cost)).max().unwrap_or(0)
}

/// How long the request would wait in the limits' own queues.
pub(super) fn longest_queue(attempts: &[Attempt<'_>], now: u64) -> u64 {
    deciding(attempts).filter_map(|attempt| attempt.queued(now)).max().unwrap_or(0)
}
