//! Rows of fixed size, four to a bucket, each bucket behind a small lock of its own.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Rows in a bucket: with prints, expiries, the lock and a mark, four rows of two words fill two cache
/// lines, which the processor fetches together.
pub(super) const ROWS: usize = 4;

/// Buckets that a row may stand in. A newcomer that finds all of them full moves a row that stands
/// there to another of that row's own choices.
///
/// Measured with a quarter more rows than the capacity, from 1 to 10 million keys, a hundred tables of
/// each small size: the first newcomer was turned away at 1.13 times the capacity or later. Without
/// moving it was at 0.35 in the large tables, with eight choices at 0.6.
pub(super) const CHOICES: usize = 4;

/// Buckets on top, which make up for the unevenness of a table that has few.
const SPARE: usize = 2;

/// Microseconds in a tick of the expiry, 65 ms: 32 bits of them last nine years from the making of
/// the table.
const TICK: u32 = 16;

/// An expiry that never comes: the row is held until it is given back.
const NEVER: u32 = u32::MAX;

pub(super) struct Table<T> {
    /// Made at first use: a service has many layers, and some of them a store that is never asked.
    buckets: OnceLock<Box<[Aligned<T>]>>,
    count: usize,
    /// When the table was made, in microseconds since the Unix epoch.
    base: u64,
}

#[repr(align(128))]
struct Aligned<T>(Mutex<Bucket<T>>);

pub(super) struct Bucket<T> {
    prints: [u64; ROWS],
    expiries: [u32; ROWS],
    rows: [T; ROWS],
    /// When the last of the rows has recovered that have this bucket as their first choice and stand
    /// in another. Until then a row that is not found here is looked for there.
    passed_until: u32,
}

/// A row on its way from one bucket to another.
pub(super) struct Lifted<T> {
    print: u64,
    expiry: u32,
    row: T,
}

impl<T: Default> Table<T> {
    pub(super) fn new(keys: usize, base: u64) -> Self {
        let count = keys.saturating_add(keys / 4).div_ceil(ROWS) + SPARE;
        Self { buckets: OnceLock::new(), count, base }
    }

    /// The bucket that is `print`'s choice number `choice`.
    pub(super) fn bucket(&self, print: u64, choice: usize) -> usize {
        // Odd multipliers shuffle the print into independent places (Dietzfelbinger's method).
        const MIX: [u64; CHOICES] =
            [1, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
        let mixed = print.rotate_left(17 * choice as u32).wrapping_mul(MIX[choice]);
        ((u128::from(mixed) * self.count as u128) >> 64) as usize
    }

    pub(super) fn lock(&self, bucket: usize) -> MutexGuard<'_, Bucket<T>> {
        // Nothing under the lock can panic half-way through a row.
        self.made()[bucket].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless somebody holds it, be it the caller.
    pub(super) fn try_lock(&self, bucket: usize) -> Option<MutexGuard<'_, Bucket<T>>> {
        self.made()[bucket].0.try_lock().ok()
    }

    pub(super) fn buckets(&self) -> usize {
        self.count
    }

    fn made(&self) -> &[Aligned<T>] {
        self.buckets.get_or_init(|| (0..self.count).map(|_| Aligned(Mutex::default())).collect())
    }

    pub(super) fn len(&self, now: u64) -> usize {
        if self.buckets.get().is_none() {
            return 0;
        }
        let tick = self.tick(now);
        (0..self.count).map(|bucket| self.lock(bucket).live(tick)).sum()
    }

    /// The expiry tick that has passed at `now`.
    pub(super) fn tick(&self, now: u64) -> u32 {
        let ticks = now.saturating_sub(self.base) >> TICK;
        u32::try_from(ticks).unwrap_or(NEVER).min(NEVER - 1)
    }

    /// The first tick at which a row that recovers after `left` has recovered.
    pub(super) fn expiry(&self, left: Option<Duration>, now: u64) -> u32 {
        match left {
            None => NEVER,
            Some(Duration::ZERO) => 0,
            Some(left) => {
                let when = now.saturating_add(left.as_micros() as u64);
                let ticks = when.saturating_sub(self.base).div_ceil(1 << TICK);
                // A clock can be set back to before the table was made: that is all in tick 0.
                u32::try_from(ticks).unwrap_or(NEVER).max(1)
            }
        }
    }
}

impl<T: Default> Bucket<T> {
    pub(super) fn find(&self, print: u64) -> Option<usize> {
        self.prints.iter().position(|row| *row == print)
    }

    /// The row of `print`, unless it has recovered.
    pub(super) fn find_live(&self, print: u64, tick: u32) -> Option<usize> {
        self.find(print).filter(|row| self.expiries[*row] > tick)
    }

    /// An empty or recovered row, none of those that `taken` knows.
    pub(super) fn free(&self, tick: u32, taken: impl Fn(usize) -> bool) -> Option<usize> {
        (0..ROWS)
            .find(|row| (self.prints[*row] == 0 || self.expiries[*row] <= tick) && !taken(*row))
    }

    /// Makes a free row that of `print`, and hands back what stood there.
    pub(super) fn claim(&mut self, row: usize, print: u64) -> T {
        self.prints[row] = print;
        // Reusable at once, should the decision spend nothing.
        self.expiries[row] = 0;
        std::mem::take(&mut self.rows[row])
    }

    /// Takes out a row that is to stand in another bucket.
    pub(super) fn lift(&mut self, row: usize) -> Lifted<T> {
        let (print, expiry) = (self.prints[row], self.expiries[row]);
        self.pass_until(expiry);
        Lifted { print, expiry, row: self.clear(row) }
    }

    /// Puts a row of another bucket into a free one, and hands back what stood there.
    pub(super) fn put(&mut self, free: usize, lifted: Lifted<T>) -> T {
        let before = self.claim(free, lifted.print);
        self.expiries[free] = lifted.expiry;
        self.rows[free] = lifted.row;
        before
    }

    pub(super) fn row(&mut self, row: usize) -> &mut T {
        &mut self.rows[row]
    }

    pub(super) fn print_at(&self, row: usize) -> u64 {
        self.prints[row]
    }

    pub(super) fn expire_at(&mut self, row: usize, expiry: u32) {
        self.expiries[row] = expiry;
    }

    /// Whether a row that belongs here may stand in another of its choices.
    pub(super) fn is_passed(&self, tick: u32) -> bool {
        self.passed_until > tick
    }

    pub(super) fn pass_until(&mut self, expiry: u32) {
        self.passed_until = self.passed_until.max(expiry);
    }

    /// Empties the rows that have recovered, and hands back what stood in them.
    pub(super) fn tidy(&mut self, tick: u32) -> [T; ROWS] {
        std::array::from_fn(
            |row| {
                if self.expiries[row] > tick { T::default() } else { self.clear(row) }
            },
        )
    }

    fn clear(&mut self, row: usize) -> T {
        self.prints[row] = 0;
        self.expiries[row] = 0;
        std::mem::take(&mut self.rows[row])
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
            passed_until: 0,
        }
    }
}
