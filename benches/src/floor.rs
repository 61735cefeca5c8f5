//! The floor: the least that this machine needs.

#![expect(
    clippy::disallowed_types,
    reason = "the least that a hash can take; no client chooses these keys"
)]

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use quanta::Clock;

/// The least work of a table of limits: one hash, one row of 16 bytes, one reading of the clock, one
/// compare-and-swap.
///
/// It is a yardstick, not a product. It answers only yes or no, knows one limit, is made for a fixed number of keys,
/// and forgets none of them. With more keys than that, finding a free row takes for ever.
///
/// Rows are in a preallocated array, open-addressed with linear probing, at least twice as long as the number of
/// keys. A key is identified by its 64-bit hash. The word beside it is the theoretical arrival time of the generic
/// cell rate algorithm, in nanoseconds.
#[derive(Debug)]
pub struct Floor {
    hasher: RandomState,
    clock: Clock,
    start: u64,
    interval: u64,
    tolerance: u64,
    rows: Box<[Row]>,
}

/// Four to a cache line, and none in two.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Row {
    /// The hash of the key, or 0 while the row is free.
    fingerprint: AtomicU64,
    arrival: AtomicU64,
}

impl Floor {
    /// One in every `interval`, at most `burst` at once, for `keys` keys.
    pub fn new(interval: Duration, burst: u32, keys: u64) -> Self {
        let clock = Clock::new();
        let start = clock.raw();
        let interval = interval.as_nanos() as u64;
        let tolerance = interval * u64::from(burst - 1);
        let count = (2 * keys).next_power_of_two();
        let rows = (0..count).map(|_| Row::default()).collect();
        Self { hasher: RandomState::default(), clock, start, interval, tolerance, rows }
    }

    /// Spends one on `key`, and returns whether it was admitted.
    #[inline]
    pub fn admits<K: Hash>(&self, key: &K) -> bool {
        let now = self.clock.delta_as_nanos(self.start, self.clock.raw());
        let arrival = &self.row(self.hasher.hash_one(key)).arrival;
        let mut last = arrival.load(Ordering::Relaxed);
        loop {
            let due = last.max(now);
            if due - now > self.tolerance {
                return false;
            }
            let next = due + self.interval;
            match arrival.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => last = other,
            }
        }
    }

    #[inline]
    fn row(&self, hash: u64) -> &Row {
        let fingerprint = hash.max(1);
        let mask = self.rows.len() - 1;
        let mut at = fingerprint as usize & mask;
        loop {
            let row = &self.rows[at];
            match row.fingerprint.load(Ordering::Relaxed) {
                found if found == fingerprint => return row,
                0 if row.claim(fingerprint) => return row,
                _ => at = (at + 1) & mask,
            }
        }
    }
}

impl Row {
    /// Takes the free row for a key, unless another thread has just taken it.
    #[cold]
    fn claim(&self, fingerprint: u64) -> bool {
        let claimed =
            self.fingerprint.compare_exchange(0, fingerprint, Ordering::Relaxed, Ordering::Relaxed);
        claimed.map_or_else(|other| other == fingerprint, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_a_burst_for_each_key_and_then_no_more() {
        let floor = Floor::new(Duration::from_secs(3_600), 3, 100);
        for key in 0..100_u64 {
            for nth in 1..=5 {
                assert_eq!(floor.admits(&key), nth <= 3, "{key}, {nth}");
            }
        }
    }
}
