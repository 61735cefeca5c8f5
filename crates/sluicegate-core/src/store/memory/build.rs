use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::hash::Seed;
use super::log_budget::LogBudget;
use super::moment::MonotonicClock;
use super::shared_rows::{MOST, SharedRows};
use super::table::Table;
use super::{Inner, Memory};
use crate::clock::Clock;

/// Keys that a store has room for unless told otherwise: 5 MB, made at first use.
const KEYS: usize = 1 << 17;

/// Log entries for each key of the capacity, unless told otherwise.
const ENTRIES: usize = 16;

/// Sets up a [`Memory`].
///
/// ```
/// use sluicegate::{ManualClock, Memory};
///
/// let clock = ManualClock::new();
/// let store = Memory::builder().capacity(10_000).clock(&clock).build();
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryBuilder {
    /// `None`: as many keys as most need, made at first use.
    capacity: Option<usize>,
    log_entries: Option<usize>,
    clock: Option<Clock>,
}

impl MemoryBuilder {
    /// Reserved for `keys` keys, each on one limit. The table for a limit is then made when a layer or limiter
    /// is made with it, 13 ms for a million keys; without this there is room for 131,072, made at first
    /// use.
    ///
    /// # Panics
    ///
    /// When `keys` is zero, or 2^32 and more: 160 GB.
    #[must_use]
    #[track_caller]
    pub fn capacity(self, keys: usize) -> Self {
        assert!(keys > 0, "a store with room for 0 keys counts nothing");
        let fits = u32::try_from(keys).is_ok();
        assert!(
            fits,
            "a store with room for {keys} keys does not fit any machine: 2^32 are too many"
        );
        Self { capacity: Some(keys), ..self }
    }

    /// The most entries, of 16 bytes each, that all sliding logs together have room for beyond the 8 that
    /// each has of its own; 16 for each key of the capacity by default.
    ///
    /// The logs of one limit get as many as they leave free at most, so that they cannot take all from
    /// another's. A log that gets no more room merges its stamps, and counts on: it is never more generous
    /// than an exact one, and a place may be free later.
    #[must_use]
    pub fn log_entries(self, entries: usize) -> Self {
        Self { log_entries: Some(entries), ..self }
    }

    /// The clock to go by; the machine's by default.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: Some(clock.into()), ..self }
    }

    /// Makes the store.
    pub fn build(self) -> Memory {
        let capacity = self.capacity.unwrap_or(KEYS);
        let clock = self.clock.unwrap_or_default();
        let base = clock.now();
        Memory(Arc::new(Inner {
            base,
            monotonic: MonotonicClock::default(),
            is_eager: self.capacity.is_some(),
            one_word: Table::new(capacity, 0),
            two_words: Table::new(capacity, base),
            full_state: Table::new(capacity, base),
            log_budget: LogBudget::new(
                self.log_entries.unwrap_or(capacity.saturating_mul(ENTRIES)),
            ),
            turned_away: AtomicU64::new(0),
            shared_rows: SharedRows::new(MOST, base),
            seed: Seed::new(),
            capacity,
            clock,
        }))
    }
}
