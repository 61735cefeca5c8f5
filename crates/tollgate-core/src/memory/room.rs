//! The room that sliding logs have for their entries: counted, and bounded for all of them together.

use std::sync::atomic::Ordering;

use super::Inner;
use crate::limit::{Limit, State};

/// Buckets looked at for each log that needs more room than is left.
const SWEPT: usize = 8;

/// Fewest entries that a log is given room for.
const FIRST_ENTRIES: usize = 4;

impl Inner {
    /// Makes sure that a log can take one more entry; says whether it can.
    pub(super) fn give_room(&self, limit: &Limit, state: &mut State) -> bool {
        let Some(log) = limit.log_of(state) else { return true };
        if log.room() > 0 {
            return true;
        }
        let before = log.capacity();
        // Beyond what the shape ever holds only places booked ahead go, one after the other.
        let left = limit.most_entries().saturating_sub(before).max(1);
        let more = before.max(FIRST_ENTRIES).min(left);
        if !self.grant(more) {
            self.sweep();
            if !self.grant(more) {
                return false;
            }
        }
        log.reserve_exact(more);
        // The allocator may have rounded up: what is really held is what counts.
        self.recount(before + more, log.capacity());
        true
    }

    /// A log that was counted with room for `before` entries has room for `after`.
    pub(super) fn recount(&self, before: usize, after: usize) {
        if after > before {
            self.entries.fetch_add(after - before, Ordering::Relaxed);
        } else if before > after {
            self.entries.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Takes back the room of a row that has recovered.
    pub(super) fn release(&self, row: Option<Box<State>>) {
        if let Some(state) = row {
            self.recount(room_of(&state), 0);
        }
    }

    fn grant(&self, more: usize) -> bool {
        let before = self.entries.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) <= self.most_entries {
            return true;
        }
        self.entries.fetch_sub(more, Ordering::Relaxed);
        false
    }

    /// Empties recovered rows of the next few buckets, for the room that their logs hold.
    fn sweep(&self) {
        let table = &self.wide;
        let tick = table.tick(self.clock.now());
        let from = self.swept.fetch_add(SWEPT, Ordering::Relaxed);
        for bucket in from..from + SWEPT {
            if let Some(bucket) = table.try_lock(bucket % table.buckets()) {
                bucket.tidy(tick).for_each(|row| self.release(row));
            }
        }
    }
}

/// Entries that the log of `state` has room for.
pub(super) fn room_of(state: &State) -> usize {
    state.log.as_ref().map_or(0, |log| log.capacity())
}
