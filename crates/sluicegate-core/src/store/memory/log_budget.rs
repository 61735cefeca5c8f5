//! The room of sliding logs for their entries, counted and bounded for all of them together.
//!
//! Each log has room for a few entries of its own. More entries are taken from a budget. The logs of one limit
//! together get at most as many as they leave free, so there are always some for the logs of another limit. A log
//! that gets no more is made coarser and goes on counting.
//!
//! The rule of the budget is that of dynamic thresholds (Choudhury and Hahne, 1998): each log has eight entries of
//! its own, and the logs of one limit together take at most as much of the budget as they leave. A log that gets no
//! more merges the stamps within one step of a power of two and keeps the latest. That frees about half of the stamps
//! at once, so a decision costs a few steps on average, and at most 65,536.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Inner;
use crate::limit::{Limit, LimitInternals as _, MOST_ENTRIES, State};

/// Entries that each log has without asking, 128 bytes. With only these, a log knows the time of its charges to a
/// quarter of its period. A limit of five login attempts is exact.
const OWN: usize = 8;

/// Buckets that are swept for each log that needs more room than is left.
const SWEPT: usize = 8;

/// The smallest number of entries that is given to a log at once.
const FIRST_ENTRIES: usize = 4;

/// The number of limits whose use of the budget is counted separately. Later limits share these counts.
const CLASSES: usize = 64;

/// The room beyond the entries that each log has of its own.
pub(super) struct LogBudget {
    /// Entries that the store has room for, and entries given to logs.
    most: usize,
    used: AtomicUsize,
    /// What the logs of each limit have taken.
    classes: Box<[LimitShare]>,
    /// The bucket at which sweeping goes on.
    swept: AtomicUsize,
}

/// The entries used by the logs of one limit.
#[derive(Default)]
struct LimitShare {
    /// The id of the limit, or 0 if the slot is unused.
    id: AtomicU64,
    used: AtomicUsize,
}

/// What a log has taken from the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    class: u8,
    entries: usize,
}

impl LogBudget {
    pub(super) fn new(most: usize) -> Self {
        let classes = (0..CLASSES).map(|_| LimitShare::default()).collect();
        Self { most, used: AtomicUsize::new(0), classes, swept: AtomicUsize::new(0) }
    }

    /// Entries given to logs.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The slot in which the logs of a limit are counted.
    fn class(&self, limit: &Limit) -> u8 {
        self.class_of(limit.id())
    }

    fn class_of(&self, id: u64) -> u8 {
        let id = id.max(1);
        // Open addressing with linear probing: a slot is taken once and never given back, so a slot that was found
        // belongs to the limit for ever. With more than 64 limits, the later ones share the slot that they begin at,
        // and together get what one would.
        let first = (id % CLASSES as u64) as usize;
        let is_own = |class: &usize| {
            let owner = &self.classes[*class].id;
            match owner.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(other) => other == id,
            }
        };
        let mut places = (0..CLASSES).map(|i| (first + i) % CLASSES);
        places.find(is_own).unwrap_or(first) as u8
    }

    fn grant(&self, class: u8, more: usize) -> bool {
        // Taken first and given back if it was too much, so that two threads never get the last entries twice.
        let before = self.used.fetch_add(more, Ordering::Relaxed);
        // `own` counts towards `used` as well, so this is the rule of the threshold: what the limit has after the grant
        // must not be more than what was free before it.
        let free = self.most.saturating_sub(before);
        let own = self.classes[usize::from(class)].used.fetch_add(more, Ordering::Relaxed);
        if own.saturating_add(more) <= free {
            return true;
        }
        self.take_back(Reserved { class, entries: more });
        false
    }

    /// The id of the first limit that is counted there.
    #[cfg(feature = "file")]
    pub(super) fn id_of(&self, class: u8) -> u64 {
        self.classes[usize::from(class) % CLASSES].id.load(Ordering::Relaxed)
    }

    fn add(&self, Reserved { class, entries }: Reserved) {
        self.used.fetch_add(entries, Ordering::Relaxed);
        self.classes[usize::from(class)].used.fetch_add(entries, Ordering::Relaxed);
    }

    fn take_back(&self, Reserved { class, entries }: Reserved) {
        self.used.fetch_sub(entries, Ordering::Relaxed);
        self.classes[usize::from(class)].used.fetch_sub(entries, Ordering::Relaxed);
    }
}

impl Inner {
    /// Makes room for `entries` more in a log. The log gets more memory, up to `most` entries in all, or becomes coarser.
    pub(super) fn reserve_entries(
        &self,
        entries: usize,
        limit: &Limit,
        state: &mut State,
        most: usize,
    ) {
        let Some(log) = limit.log_of(state) else { return };
        let lacking = entries.saturating_sub(log.room());
        if lacking == 0 {
            return;
        }
        let before = log.capacity();
        // Only places booked ahead go beyond what the algorithm ever holds. They come one at a time.
        let left = limit.most_entries().saturating_sub(before).max(lacking);
        // Twice as much each time, so that a log that grows to its full length is moved a few times only.
        let more = before.max(FIRST_ENTRIES).min(left);
        let more = more.min(most.min(MOST_ENTRIES).saturating_sub(before));
        let class = self.log_budget.class(limit);
        let asked = beyond_own(before + more) - beyond_own(before);
        if more < lacking || !self.has_granted(class, asked) {
            return log.coarsen(before);
        }
        log.reserve_exact(log.room() + more);
        log.set_class(class);
        // The allocator may have rounded up. What is really held is counted.
        let rounded = beyond_own(log.capacity()) - beyond_own(before + more);
        self.log_budget.add(Reserved { class, entries: rounded });
    }

    fn has_granted(&self, class: u8, asked: usize) -> bool {
        if asked == 0 || self.log_budget.grant(class, asked) {
            return true;
        }
        // Rows that have recovered keep their room until they are reused. A few are looked for now, where it is needed.
        self.sweep();
        self.log_budget.grant(class, asked)
    }

    /// Updates the counts after the room of a log has changed.
    pub(super) fn recount(&self, before: Reserved, after: Reserved) {
        if before != after {
            self.log_budget.add(after);
            self.log_budget.take_back(before);
        }
    }

    /// Takes back the room of a row that has recovered.
    pub(super) fn release(&self, row: Option<Box<State>>) {
        if let Some(state) = row {
            self.recount(reserved_by(&state), Reserved::default());
        }
    }

    /// Empties recovered rows of the next few buckets, to reclaim the room of their logs.
    fn sweep(&self) {
        let table = &self.full_state;
        let tick = table.tick(self.clock.now());
        // One counter for all threads, so each sweeps other buckets, and all of them come up in turn.
        let from = self.log_budget.swept.fetch_add(SWEPT, Ordering::Relaxed);
        for bucket in from..from + SWEPT {
            // This thread holds locks of the same table. Waiting for one of them would never end, and waiting for
            // another one could.
            if let Some(bucket) = table.try_lock(bucket % table.buckets()) {
                bucket.tidy(tick).for_each(|row| self.release(row));
            }
        }
    }
}

#[cfg(feature = "file")]
impl Inner {
    /// Counts the room of a log that was read from a file, of the limit `id`, or makes it coarser where there is none.
    /// What a limit may take of what the others leave was decided when the log grew.
    pub(super) fn count_restored(&self, state: &mut State, id: u64) {
        let Some(log) = state.log.as_deref_mut() else { return };
        let free =
            self.log_budget.most.saturating_sub(self.log_budget.used.load(Ordering::Relaxed));
        if beyond_own(log.capacity()) > free {
            *log = log.coarse(OWN);
        }
        log.set_class(self.log_budget.class_of(id));
        self.log_budget.add(reserved_by(state));
    }
}

/// What the log of `state` has taken from the budget.
pub(super) fn reserved_by(state: &State) -> Reserved {
    state.log.as_ref().map_or(Reserved::default(), |log| Reserved {
        class: log.class(),
        entries: beyond_own(log.capacity()),
    })
}

fn beyond_own(entries: usize) -> usize {
    entries.saturating_sub(OWN)
}

/// A copy of `state` for a new row, while another row keeps `state`.
pub(super) fn copy_of(state: &State) -> State {
    let mut copy = state.without_log();
    copy.log = state.log.as_ref().map(|log| Box::new(log.coarse(OWN)));
    copy
}
