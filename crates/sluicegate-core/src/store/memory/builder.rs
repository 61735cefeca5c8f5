use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::log_budget::LogBudget;
use super::moment::MonotonicClock;
use super::shared_rows::{MOST, SharedRows};
use super::table::Table;
use super::{Inner, Memory};
use crate::clock::Clock;
use crate::key::hash::KeyHash;

/// The default capacity in keys: 5 MB, allocated at first use.
const KEYS: usize = 1 << 17;

/// The default number of log entries for each key of the capacity.
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
    /// `None`: the default capacity, allocated at first use.
    capacity: Option<usize>,
    log_entries: Option<usize>,
    clock: Option<Clock>,
}

impl MemoryBuilder {
    /// Reserves memory for `keys` keys, each on one limit. The table for a limit is allocated when a layer or limiter
    /// with that limit is made, which takes 13 ms for a million keys. Without this there is room for 131,072 keys,
    /// allocated at first use.
    ///
    /// # Panics
    ///
    /// If `keys` is zero, or 2^32 or more, which would take 160 GB.
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

    /// The largest number of entries, of 16 bytes each, for all sliding logs together, beyond the 8 that each log has
    /// of its own. The default is 16 for each key of the capacity.
    ///
    /// The logs of one limit together get at most half of what the logs of other limits leave, so that they cannot
    /// take all of it. A log that gets no more room merges its stamps and goes on counting. It is never more generous
    /// than an exact log, but a place may become free later.
    #[must_use]
    pub fn log_entries(self, entries: usize) -> Self {
        Self { log_entries: Some(entries), ..self }
    }

    /// The clock. The default is the machine's clock.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: Some(clock.into()), ..self }
    }

    /// Builds the store.
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
            hash: KeyHash::new(),
            capacity,
            clock,
        }))
    }
}
