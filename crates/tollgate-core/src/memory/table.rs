//! Rows of fixed size, four to a bucket, each bucket behind a small lock of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows in a bucket: with prints, expiries, the lock and a flag, four rows of two words fill two cache
/// lines, which the processor fetches together.
const ROWS: usize = 4;

/// Buckets that a row may stand in: one that cannot find a place in any of them is turned away. With
/// four, that stays rare up to nine tenths of the rows in use.
pub(super) const CHOICES: usize = 4;

/// Microseconds in a tick of the expiry, 65 ms: 32 bits of them last nine years from the making of
/// the table.
const TICK: u32 = 16;

/// An expiry that never comes: the row is held until it is given back.
const NEVER: u32 = u32::MAX;

pub(super) struct Table<T> {
    buckets: Box<[Aligned<T>]>,
    /// When the table was made, in microseconds since the Unix epoch.
    base: u64,
}

#[repr(align(128))]
struct Aligned<T>(Mutex<Bucket<T>>);

pub(super) struct Bucket<T> {
    prints: [u64; ROWS],
    expiries: [u32; ROWS],
    rows: [T; ROWS],
    /// Whether a row was once turned away from here to its next choice.
    pub(super) passed: bool,
}

impl<T: Default> Table<T> {
    pub(super) fn new(keys: usize, base: u64) -> Self {
        let buckets = (keys + keys / 4).div_ceil(ROWS);
        Self { buckets: (0..buckets).map(|_| Aligned(Mutex::default())).collect(), base }
    }

    /// The bucket that is `print`'s choice number `choice`.
    pub(super) fn bucket(&self, print: u64, choice: usize) -> usize {
        // Odd multipliers shuffle the print into independent places (Dietzfelbinger's method).
        const MIX: [u64; CHOICES] =
            [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let mixed = print.rotate_left(17 * choice as u32).wrapping_mul(MIX[choice]);
        ((u128::from(mixed) * self.buckets.len() as u128) >> 64) as usize
    }

    pub(super) fn lock(&self, bucket: usize) -> MutexGuard<'_, Bucket<T>> {
        // Nothing under the lock can panic half-way through a row.
        self.buckets[bucket].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless somebody else holds it.
    pub(super) fn try_lock(&self, bucket: usize) -> Option<MutexGuard<'_, Bucket<T>>> {
        self.buckets[bucket].0.try_lock().ok()
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn len(&self, now: u64) -> usize {
        let tick = self.tick(now);
        (0..self.buckets.len()).map(|bucket| self.lock(bucket).live(tick)).sum()
    }

    /// The expiry tick that has passed at `now`.
    pub(super) fn tick(&self, now: u64) -> u32 {
        let ticks = now.saturating_sub(self.base) >> TICK;
        u32::try_from(ticks).unwrap_or(NEVER).min(NEVER - 1)
    }

    /// The first tick at which a row that recovers at `when` has recovered.
    pub(super) fn expiry(&self, when: Option<u64>) -> u32 {
        when.map_or(NEVER, |when| {
            let ticks = when.saturating_sub(self.base).div_ceil(1 << TICK);
            u32::try_from(ticks).unwrap_or(NEVER)
        })
    }
}

impl<T: Default> Bucket<T> {
    pub(super) fn find(&self, print: u64) -> Option<usize> {
        self.prints.iter().position(|row| *row == print)
    }

    /// Takes an empty or recovered row for `print`, and hands back what stood there.
    pub(super) fn claim(&mut self, print: u64, tick: u32) -> Option<(usize, T)> {
        let row = (0..ROWS).find(|row| self.prints[*row] == 0 || self.expiries[*row] <= tick)?;
        self.prints[row] = print;
        // Reusable at once, should the decision spend nothing.
        self.expiries[row] = 0;
        Some((row, std::mem::take(&mut self.rows[row])))
    }

    pub(super) fn row(&mut self, row: usize) -> &mut T {
        &mut self.rows[row]
    }

    pub(super) fn expire_at(&mut self, row: usize, expiry: u32) {
        self.expiries[row] = expiry;
    }

    /// Empties the rows that have recovered, and hands back what stood in them.
    pub(super) fn tidy(&mut self, tick: u32) -> [T; ROWS] {
        std::array::from_fn(|row| {
            if self.expiries[row] > tick {
                return T::default();
            }
            self.prints[row] = 0;
            std::mem::take(&mut self.rows[row])
        })
    }

    fn live(&self, tick: u32) -> usize {
        (0..ROWS).filter(|row| self.prints[*row] != 0 && self.expiries[*row] > tick).count()
    }
}

impl<T: Default> Default for Bucket<T> {
    fn default() -> Self {
        Self {
            prints: [0; ROWS],
            expiries: [0; ROWS],
            rows: std::array::from_fn(|_| T::default()),
            passed: false,
        }
    }
}
