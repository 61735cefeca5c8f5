//! The time, in the form that each kind of row needs.

use std::sync::{Mutex, PoisonError};

use super::Inner;
use crate::clock::{Clock, ManualClock};
use crate::limit::bounded;

/// One moment, in two forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The time of the store, in microseconds since the Unix epoch.
    pub(super) now: u64,
    /// Microseconds since the store was made. Never steps back.
    pub(super) since: u64,
}

/// The time of a store: its clock, and what the store is ahead of it. That is nothing unless the store was read from a
/// file and the machine's time was set since or before: the time in the file goes on.
#[derive(Debug, Clone)]
pub(super) struct StoreClock {
    pub(super) clock: Clock,
    /// In microseconds; wraps around where the store is behind.
    pub(super) ahead: u64,
}

impl StoreClock {
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.ahead)
    }

    #[inline]
    fn now_in_order(&self) -> u64 {
        self.clock.now_in_order().wrapping_add(self.ahead)
    }

    /// The time for a decision about something last changed at `since`. Clocks are read before a row is locked, so
    /// another thread may have written a later time. A machine's clock is not set back.
    #[inline]
    pub(super) fn at_least(&self, now: u64, since: u64) -> u64 {
        match self.clock.as_manual() {
            None => now.max(since),
            Some(_) if since > now => self.now(),
            Some(_) => now,
        }
    }
}

/// A monotonic view of a manual clock. Rows of one word store when they are free, and a step back of the clock would
/// delay that.
#[derive(Debug, Default)]
pub(super) struct MonotonicClock(Mutex<Option<Steps>>);

#[derive(Debug, Clone, Copy)]
struct Steps {
    /// The last time read.
    last: u64,
    /// The sum of all steps back.
    back: u64,
}

impl MonotonicClock {
    /// Reads the clock, under a lock: no thread sees an earlier time than another thread saw before.
    fn read(&self, clock: &ManualClock, ahead: u64, base: u64) -> Moment {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = bounded(clock.now()).wrapping_add(ahead);
        let Steps { last, back } = steps.unwrap_or(Steps { last: base, back: 0 });
        // The sum of all steps back is added to the clock, so `since` stands still in a step and goes on from there.
        let back = back + last.saturating_sub(now);
        *steps = Some(Steps { last: now, back });
        Moment { now, since: now + back - base }
    }
}

impl Inner {
    #[inline]
    pub(super) fn moment(&self) -> Moment {
        match self.clock.clock.as_manual() {
            None => self.at(self.clock.now()),
            Some(clock) => self.monotonic.read(clock, self.clock.ahead, self.base),
        }
    }

    /// Like [`moment`](Self::moment), for use under a lock: never earlier than a moment that another thread got under
    /// the same lock.
    pub(super) fn moment_in_order(&self) -> Moment {
        match self.clock.clock.as_manual() {
            None => self.at(self.clock.now_in_order()),
            Some(clock) => self.monotonic.read(clock, self.clock.ahead, self.base),
        }
    }

    #[inline]
    fn at(&self, now: u64) -> Moment {
        Moment { now, since: now.saturating_sub(self.base) }
    }
}
