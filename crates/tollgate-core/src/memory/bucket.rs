//! Four rows and what is known of them, behind a small lock of their own.

use std::ops::Deref;

use super::lock::{Lock, Seen};
use super::row::Row;
use super::sync::{AtomicU32, AtomicU64, Ordering};

/// Rows in a bucket: with four rows of two words, all that is looked through fills one cache line and the
/// rows another beside it, which are fetched together.
pub(super) const ROWS: usize = 4;

/// Written by whoever holds the lock.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Bucket<R> {
    lock: Lock,
    /// When the last of the rows has recovered that have this bucket as their first choice and stand
    /// in another. Until then a row that is not found here is looked for there.
    passed_until: AtomicU32,
    expiries: [AtomicU32; ROWS],
    prints: [AtomicU64; ROWS],
    rows: [R; ROWS],
}

/// A bucket that is locked.
pub(super) struct Guard<'a, R: Row>(&'a Bucket<R>);

/// A row on its way from one bucket to another.
pub(super) struct Lifted<C> {
    print: u64,
    expiry: u32,
    content: C,
}

impl<R: Row> Bucket<R> {
    /// Looks without taking the lock, if nobody holds it. What is read then counts only if
    /// [`is_still`](Self::is_still) or [`lock_if_still`](Self::lock_if_still) says so afterwards.
    #[inline]
    pub(super) fn look(&self) -> Option<Seen> {
        self.lock.look()
    }

    #[inline]
    pub(super) fn is_still(&self, seen: Seen) -> bool {
        self.lock.is_still(seen)
    }

    #[inline]
    pub(super) fn lock_if_still(&self, seen: Seen) -> Option<Guard<'_, R>> {
        self.lock.lock_if_still(seen).then(|| Guard(self))
    }

    pub(super) fn lock(&self) -> Guard<'_, R> {
        self.lock.lock();
        Guard(self)
    }

    pub(super) fn try_lock(&self) -> Option<Guard<'_, R>> {
        self.lock.try_lock().then(|| Guard(self))
    }

    #[inline]
    pub(super) fn find(&self, print: u64) -> Option<usize> {
        // All four are compared, whichever it is: a jump that depends on it is mispredicted more often
        // than not.
        let is_at = |row| u32::from(self.print_at(row) == print) << row;
        let found = (0..ROWS).fold(0, |found, row| found | is_at(row));
        (found != 0).then(|| found.trailing_zeros() as usize % ROWS)
    }

    /// The row of `print`, unless it has recovered.
    pub(super) fn find_live(&self, print: u64, tick: u32) -> Option<usize> {
        self.find(print).filter(|row| self.is_live(*row, tick))
    }

    #[inline]
    pub(super) fn is_live(&self, row: usize, tick: u32) -> bool {
        self.expiry_at(row) > tick
    }

    /// An empty or recovered row, none of those that `taken` knows.
    pub(super) fn free(&self, tick: u32, taken: impl Fn(usize) -> bool) -> Option<usize> {
        let free = |row: &usize| self.print_at(*row) == 0 || !self.is_live(*row, tick);
        (0..ROWS).find(|row| free(row) && !taken(*row))
    }

    /// Whether a row that belongs here may stand in another of its choices.
    #[inline]
    pub(super) fn is_passed(&self, tick: u32) -> bool {
        self.passed_until.load(Ordering::Relaxed) > tick
    }

    /// Whether it holds for as long as a row lasts that stands in another of its choices.
    #[inline]
    pub(super) fn is_passed_until(&self, expiry: u32) -> bool {
        self.passed_until.load(Ordering::Relaxed) >= expiry
    }

    /// Has the cache line of the rows fetched while that of the prints is looked through, rather than
    /// afterwards; always true. Measured with 10 million keys: 119 ns instead of 135.
    #[inline]
    pub(super) fn fetch_rows(&self) -> bool {
        self.rows[0].is_readable()
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &R {
        &self.rows[row]
    }

    pub(super) fn live(&self, tick: u32) -> usize {
        (0..ROWS).filter(|row| self.print_at(*row) != 0 && self.is_live(*row, tick)).count()
    }

    #[inline]
    pub(super) fn print_at(&self, row: usize) -> u64 {
        self.prints[row].load(Ordering::Relaxed)
    }

    #[inline]
    fn expiry_at(&self, row: usize) -> u32 {
        self.expiries[row].load(Ordering::Relaxed)
    }
}

impl<R: Row> Guard<'_, R> {
    /// Makes a free row that of `print`, and hands back what stood there.
    pub(super) fn claim(&self, row: usize, print: u64) -> R::Content {
        self.prints[row].store(print, Ordering::Relaxed);
        // Reusable at once, should the decision spend nothing.
        self.expire_at(row, 0);
        self.rows[row].take()
    }

    /// Takes out a row that is to stand in another bucket.
    pub(super) fn lift(&self, row: usize) -> Lifted<R::Content> {
        let (print, expiry) = (self.print_at(row), self.expiry_at(row));
        self.pass_until(expiry);
        Lifted { print, expiry, content: self.clear(row) }
    }

    /// Puts a row of another bucket into a free one, and hands back what stood there.
    pub(super) fn put(&self, free: usize, lifted: Lifted<R::Content>) -> R::Content {
        let before = self.claim(free, lifted.print);
        self.expire_at(free, lifted.expiry);
        self.rows[free].put(lifted.content);
        before
    }

    #[inline]
    pub(super) fn expire_at(&self, row: usize, expiry: u32) {
        self.expiries[row].store(expiry, Ordering::Relaxed);
    }

    pub(super) fn pass_until(&self, expiry: u32) {
        let until = self.passed_until.load(Ordering::Relaxed).max(expiry);
        self.passed_until.store(until, Ordering::Relaxed);
    }

    /// Empties the rows that have recovered, and hands back what stood in them.
    pub(super) fn tidy(&self, tick: u32) -> impl Iterator<Item = R::Content> {
        (0..ROWS).filter(move |row| !self.is_live(*row, tick)).map(|row| self.clear(row))
    }

    fn clear(&self, row: usize) -> R::Content {
        self.prints[row].store(0, Ordering::Relaxed);
        self.expire_at(row, 0);
        self.rows[row].take()
    }
}

impl<R: Row> Deref for Guard<'_, R> {
    type Target = Bucket<R>;

    #[inline]
    fn deref(&self) -> &Bucket<R> {
        self.0
    }
}

impl<R: Row> Drop for Guard<'_, R> {
    #[inline]
    fn drop(&mut self) {
        self.lock.open();
    }
}
