//! The time, in the form that each kind of row needs.

use std::sync::{Mutex, PoisonError};

use super::Inner;
use crate::clock::ManualClock;

/// One moment, in two forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The time of the clock, in microseconds since the Unix epoch.
    pub(super) now: u64,
    /// Microseconds since the store was made. Never steps back.
    pub(super) since: u64,
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
    fn read(&self, clock: &ManualClock, base: u64) -> Moment {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = crate::limit::bounded(clock.now());
        let Steps { last, back } = steps.unwrap_or(Steps { last: base, back: 0 });
        let back = back + last.saturating_sub(now);
        *steps = Some(Steps { last: now, back });
        Moment { now, since: now + back - base }
    }
}

impl Inner {
    #[inline]
    pub(super) fn moment(&self) -> Moment {
        match self.clock.as_manual() {
            None => self.at(self.clock.now()),
            Some(clock) => self.monotonic.read(clock, self.base),
        }
    }

    /// Like [`moment`](Self::moment), for use under a lock: never earlier than a moment that another thread got under
    /// the same lock.
    pub(super) fn moment_in_order(&self) -> Moment {
        match self.clock.as_manual() {
            None => self.at(self.clock.now_in_order()),
            Some(clock) => self.monotonic.read(clock, self.base),
        }
    }

    #[inline]
    fn at(&self, now: u64) -> Moment {
        Moment { now, since: now.saturating_sub(self.base) }
    }
}
