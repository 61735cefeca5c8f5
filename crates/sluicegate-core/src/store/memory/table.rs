//! Buckets of rows, allocated once and never resized, and the four choices that each key has among them.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::bucket::{Bucket, Guard};

/// The number of buckets that a row may be in: the choices of cuckoo hashing. A new key that finds all of them full
/// displaces one row to another of that row's own choices.
///
/// Measured with 1 to 10 million keys. With buckets of four rows and a fifth more rows than the capacity, the first
/// new key without room came at 1.06 times the capacity or later. With buckets of three rows and four fifths more, it
/// came at 1.49. Without displacing, and with a quarter more rows in buckets of four, it came at 0.35, or at 0.6 with
/// eight choices.
pub(super) const CHOICES: usize = 4;

/// Most requests are charged to no more limits than this. For these, no list is allocated.
pub(super) const USUAL_LIMITS: usize = 4;

/// Extra buckets, which make up for the uneven distribution in a small table.
const SPARE: usize = 2;

/// Microseconds in a tick of the expiry, 65 ms: 32 bits last for nine years after the table is made.
const TICK: u32 = 16;

/// An expiry that never comes: the row is held until it is given back.
pub(super) const NEVER: u32 = u32::MAX;

/// Up to this many buckets are all read to count the rows in use, which takes half a millisecond. A store of the
/// default capacity has fewer.
const ALL: usize = 1 << 17;

/// A larger table is sampled at even distances. Each sample is a cache line that is in no cache. The estimate has a
/// standard error of 1.4 % if one row in ten is in use.
const SAMPLE: usize = 1 << 14;

/// The largest number of displaced rows that is noted: 8 MB of them, far more than are displaced while a table is read.
const MOST_MOVED: usize = 1 << 20;

pub(super) struct Table<B> {
    /// Allocated at first use: a service has many layers, and the stores of some are never asked.
    buckets: OnceLock<Box<[B]>>,
    count: usize,
    /// When the table was made, by its clock.
    base: u64,
    /// The fingerprints of rows that were displaced, if somebody wants to know: see [`take_moved`](Self::take_moved).
    moved: OnceLock<Mutex<Vec<u64>>>,
}

impl<B: Bucket> Table<B> {
    pub(super) fn new(keys: usize, base: u64) -> Self {
        let count = keys.saturating_mul(100 + B::SPARE).div_ceil(100 * B::ROWS) + SPARE;
        Self { buckets: OnceLock::new(), count, base, moved: OnceLock::new() }
    }

    /// The number of the bucket that is choice number `choice` of `fingerprint`.
    #[inline]
    pub(super) fn choice(&self, fingerprint: u64, choice: usize) -> usize {
        // Odd multipliers turn the fingerprint into independent places (Dietzfelbinger's method).
        const MIX: [u64; CHOICES] =
            [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let mixed = fingerprint.rotate_left(17 * choice as u32).wrapping_mul(MIX[choice]);
        // The upper half of the product maps to `0..count` without a division (Lemire, "Fast random integer generation
        // in an interval", 2019), so the number of buckets need not be a power of two, which would waste up to half of
        // the memory.
        ((u128::from(mixed) * self.count as u128) >> 64) as usize
    }

    #[inline]
    pub(super) fn bucket(&self, number: usize) -> &B {
        &self.made()[number]
    }

    pub(super) fn lock(&self, number: usize) -> Guard<'_, B> {
        self.bucket(number).lock()
    }

    /// Like [`lock`](Self::lock), but returns `None` instead of waiting, even for a bucket that this thread holds.
    pub(super) fn try_lock(&self, number: usize) -> Option<Guard<'_, B>> {
        self.bucket(number).try_lock()
    }

    pub(super) fn buckets(&self) -> usize {
        self.count
    }

    /// Allocates the buckets now instead of at first use.
    pub(super) fn make(&self) {
        self.made();
    }

    #[inline]
    fn made(&self) -> &[B] {
        self.buckets.get_or_init(|| (0..self.count).map(|_| B::default()).collect())
    }

    /// Notes that a row was displaced. Called while both buckets are locked, so a thread that no longer finds the row in
    /// the one, and looked at the other before, learns of it.
    pub(super) fn note_moved(&self, fingerprint: u64) {
        if let Some(moved) = self.moved.get() {
            let mut moved = moved.lock().unwrap_or_else(PoisonError::into_inner);
            if moved.len() <= MOST_MOVED {
                moved.push(fingerprint);
            }
        }
    }

    /// The rows that were displaced since the last call, from the first call on. `None` if they were too many.
    #[cfg(feature = "file")]
    pub(super) fn take_moved(&self) -> Option<Vec<u64>> {
        let moved = self.moved.get_or_init(Mutex::default);
        let moved = std::mem::take(&mut *moved.lock().unwrap_or_else(PoisonError::into_inner));
        (moved.len() <= MOST_MOVED).then_some(moved)
    }

    /// The buckets, if they have been allocated.
    #[cfg(feature = "file")]
    pub(super) fn allocated(&self) -> Option<&[B]> {
        self.buckets.get().map(Box::as_ref)
    }

    /// The moment of a tick.
    #[cfg(feature = "file")]
    pub(super) fn moment_of(&self, tick: u32) -> u64 {
        self.base + (u64::from(tick) << TICK)
    }

    pub(super) fn len(&self, now: u64) -> usize {
        if self.buckets.get().is_none() {
            return 0;
        }
        let tick = self.tick(now);
        (0..self.count).map(|bucket| self.lock(bucket).live(tick)).sum()
    }

    /// About how many rows are in use: counted, or in a large table estimated from a sample.
    pub(super) fn about_len(&self, now: u64) -> usize {
        if self.buckets.get().is_none() {
            return 0;
        }
        let tick = self.tick(now);
        let looked = if self.count <= ALL { self.count } else { SAMPLE };
        // Keys are spread over the buckets at random, so buckets at even distances are a fair sample.
        let number = |i: usize| (i as u128 * self.count as u128 / looked as u128) as usize;
        // Read without the locks: no thread should wait for a number that is outdated when it is known.
        let live: usize = (0..looked).map(|i| self.bucket(number(i)).live(tick)).sum();
        (live as u128 * self.count as u128 / looked as u128) as usize
    }

    /// The expiry tick at `now`.
    #[inline]
    pub(super) fn tick(&self, now: u64) -> u32 {
        // Rounded down, and expiries are rounded up: a row counts as recovered up to a tick late, and never early.
        let ticks = now.saturating_sub(self.base) >> TICK;
        ticks.min(u64::from(NEVER - 1)) as u32
    }

    /// The first tick at which a row has recovered that recovers after `left` microseconds. `None` if it recovers
    /// only when it is given back.
    #[inline]
    pub(super) fn expiry(&self, left: Option<u64>, now: u64) -> u32 {
        match left {
            None => NEVER,
            Some(0) => 0,
            Some(left) => {
                // Both are exact in a double, so their sum does not overflow. A clock may be set back to before the
                // table was made: all of that is tick 0.
                ticks((now + left).saturating_sub(self.base)).max(1)
            }
        }
    }
}

/// The first tick at which this many microseconds have passed.
pub(super) fn ticks(passed: u64) -> u32 {
    passed.div_ceil(1 << TICK).min(u64::from(NEVER)) as u32
}
