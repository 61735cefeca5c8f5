//! Buckets of rows, made once and never resized; the four choices that each key has among them.

use std::sync::OnceLock;

use super::bucket::{Bucket, Guard};

/// Buckets that a row may be in: the choices of cuckoo hashing. A new key that finds all of them full displaces one row
/// to another of that row's own choices.
///
/// Measured with 1 to 10 million keys, where buckets of four have a fifth more rows than the capacity: the
/// first newcomer was turned away at 1.06 times the capacity or later; of buckets of three with four fifths
/// more, at 1.49. Without moving, and with a quarter more rows of four, it was at 0.35, with eight choices at
/// 0.6.
pub(super) const CHOICES: usize = 4;

/// Most requests are charged to no more limits than this: what is kept for so few of them is not allocated.
pub(super) const USUAL_LIMITS: usize = 4;

/// Buckets on top, which make up for the unevenness of a table that has few.
const SPARE: usize = 2;

/// Microseconds in a tick of the expiry, 65 ms: 32 bits of them last nine years from the making of
/// the table.
const TICK: u32 = 16;

/// An expiry that never comes: the row is held until it is given back.
pub(super) const NEVER: u32 = u32::MAX;

/// Buckets that are all looked at to say how many rows are in use, which takes half a millisecond: those of a
/// store that is made for as many keys as most need.
const ALL: usize = 1 << 17;

/// In a larger table, a sample at even distances: each is a cache line that is in no cache. From them the number
/// of rows is told with a standard error of 1.4 % where one row in ten is in use.
const SAMPLE: usize = 1 << 14;

pub(super) struct Table<B> {
    /// Made at first use: a service has many layers, and some of them a store that is never asked.
    buckets: OnceLock<Box<[B]>>,
    count: usize,
    /// When the table was made, by the clock that it goes by.
    base: u64,
}

impl<B: Bucket> Table<B> {
    pub(super) fn new(keys: usize, base: u64) -> Self {
        let count = keys.saturating_mul(100 + B::SPARE).div_ceil(100 * B::ROWS) + SPARE;
        Self { buckets: OnceLock::new(), count, base }
    }

    /// The number of the bucket that is `fingerprint`'s choice number `choice`.
    #[inline]
    pub(super) fn choice(&self, fingerprint: u64, choice: usize) -> usize {
        // Odd multipliers shuffle the fingerprint into independent places (Dietzfelbinger's method).
        const MIX: [u64; CHOICES] =
            [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let mixed = fingerprint.rotate_left(17 * choice as u32).wrapping_mul(MIX[choice]);
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

    /// Makes the buckets now, rather than at first use.
    pub(super) fn make(&self) {
        self.made();
    }

    #[inline]
    fn made(&self) -> &[B] {
        self.buckets.get_or_init(|| (0..self.count).map(|_| B::default()).collect())
    }

    pub(super) fn len(&self, now: u64) -> usize {
        if self.buckets.get().is_none() {
            return 0;
        }
        let tick = self.tick(now);
        (0..self.count).map(|bucket| self.lock(bucket).live(tick)).sum()
    }

    /// About how many rows are in use: counted, or in a large table told from a sample.
    pub(super) fn about_len(&self, now: u64) -> usize {
        if self.buckets.get().is_none() {
            return 0;
        }
        let tick = self.tick(now);
        let looked = if self.count <= ALL { self.count } else { SAMPLE };
        // Keys are scattered over the buckets, so those at even distances are as good as any.
        let number = |i: usize| (i as u128 * self.count as u128 / looked as u128) as usize;
        // Not behind their locks: nobody is to wait for a number that is old when it is known.
        let live: usize = (0..looked).map(|i| self.bucket(number(i)).live(tick)).sum();
        (live as u128 * self.count as u128 / looked as u128) as usize
    }

    /// The expiry tick that has passed at `now`.
    #[inline]
    pub(super) fn tick(&self, now: u64) -> u32 {
        let ticks = now.saturating_sub(self.base) >> TICK;
        ticks.min(u64::from(NEVER - 1)) as u32
    }

    /// The first tick at which a row that recovers after `left` microseconds has recovered; `None`: not
    /// before it is given back.
    #[inline]
    pub(super) fn expiry(&self, left: Option<u64>, now: u64) -> u32 {
        match left {
            None => NEVER,
            Some(0) => 0,
            Some(left) => {
                // Both are exact in a double, so their sum does not overflow. A clock can be set back to
                // before the table was made: that is all in tick 0.
                ticks((now + left).saturating_sub(self.base)).max(1)
            }
        }
    }
}

/// The first tick at which this many microseconds have passed.
pub(super) fn ticks(passed: u64) -> u32 {
    passed.div_ceil(1 << TICK).min(u64::from(NEVER)) as u32
}
