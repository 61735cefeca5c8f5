//! A bucket of the table: a few rows with one small lock.

use std::ops::Deref;

use super::lock::{Lock, Version};
use super::sync::{AtomicU32, Ordering};

/// The longest time in ticks for which a bucket is remembered as stuck: 4 seconds. If a row elsewhere is freed early,
/// because something is given back, a row is displaced there no later than that.
///
/// In a flood of new keys against a full table, this skips the search through 36 other buckets. Turning away a key took
/// 2.1 µs without it and takes 0.7 µs with it, at a million keys.
const MOST_STUCK: u32 = 64;

/// A few rows, and the data kept about them.
///
/// Methods of this trait may be called only while the lock is held, except those that read. What is read without the
/// lock is valid only if [`is_unchanged`](Self::is_unchanged) or [`lock_if_unchanged`](Self::lock_if_unchanged)
/// confirms it afterwards.
pub(super) trait Bucket: Default {
    /// The content of a row.
    type Content: Default;

    /// The number of rows.
    const ROWS: usize;

    /// How many more rows than keys a table has, in percent.
    const SPARE: usize;

    fn bucket_lock(&self) -> &Lock;

    /// When the last displaced row has recovered: a row whose first choice is this bucket and that is in another one.
    /// Until then a row that is not found here is looked for in its other choices.
    fn displaced_until(&self) -> &AtomicU32;

    /// Until when no row of the bucket can be displaced, because all rows in their other choices are in use.
    fn stuck_until(&self) -> &AtomicU32;

    fn fingerprint_at(&self, row: usize) -> u64;

    /// The tick at which the row has recovered.
    fn expiry_at(&self, row: usize) -> u32;

    /// Gives a row that was free at `tick` to `fingerprint`, and returns its old content; `None` if the row is no
    /// longer free.
    fn claim(&self, row: usize, fingerprint: u64, tick: u32) -> Option<Self::Content>;

    /// Takes the content out of a row. Some content has to be put back.
    fn take(&self, row: usize) -> Self::Content;

    fn put(&self, row: usize, content: Self::Content, expiry: u32);

    /// Like [`take`](Self::take), and also returns the tick at which the row has recovered.
    fn take_with_expiry(&self, row: usize) -> (Self::Content, u32);

    /// Frees the row.
    fn clear(&self, row: usize);

    #[inline]
    fn version(&self) -> Option<Version> {
        self.bucket_lock().version()
    }

    #[inline]
    fn is_unchanged(&self, version: Version) -> bool {
        self.bucket_lock().is_unchanged(version)
    }

    #[inline]
    fn lock_if_unchanged(&self, version: Version) -> Option<Guard<'_, Self>> {
        self.bucket_lock().lock_if_unchanged(version).then(|| Guard(self))
    }

    fn lock(&self) -> Guard<'_, Self> {
        self.bucket_lock().lock();
        Guard(self)
    }

    fn try_lock(&self) -> Option<Guard<'_, Self>> {
        self.bucket_lock().try_lock().then(|| Guard(self))
    }

    #[inline(always)]
    fn find(&self, fingerprint: u64) -> Option<usize> {
        // Compares all rows, even after a match: a branch on the match would be mispredicted more often than not.
        let is_at = |row| u32::from(self.fingerprint_at(row) == fingerprint) << row;
        // No fingerprint is 0, so an empty row never matches. A bucket may hold a fingerprint twice, if a row moved to
        // where its key had left one that has recovered. Rows move to the first free place, so the live one is the
        // lower of the two, and that is the one found here.
        let found = (0..Self::ROWS).fold(0, |found, row| found | is_at(row));
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    /// The row of `fingerprint`, unless it has recovered.
    fn find_live(&self, fingerprint: u64, tick: u32) -> Option<usize> {
        self.find(fingerprint).filter(|row| self.is_live(*row, tick))
    }

    /// The row of `fingerprint`, also if it has recovered, unless a live one may be in another of its choices.
    #[inline]
    fn find_own(&self, fingerprint: u64, tick: u32) -> Option<usize> {
        let has_displaced = self.has_displaced(tick);
        self.find(fingerprint).filter(|row| !has_displaced || self.is_live(*row, tick))
    }

    #[inline]
    fn is_live(&self, row: usize, tick: u32) -> bool {
        self.expiry_at(row) > tick
    }

    /// Whether the row is empty, or has recovered.
    fn is_free(&self, row: usize, tick: u32) -> bool {
        self.fingerprint_at(row) == 0 || !self.is_live(row, tick)
    }

    /// Gives a free row to `fingerprint`, but none for which `taken` is true, and returns the row and its old
    /// content.
    fn claim_free(
        &self,
        fingerprint: u64,
        tick: u32,
        taken: impl Fn(usize) -> bool,
    ) -> Option<(usize, Self::Content)> {
        let free = |row: &usize| self.is_free(*row, tick) && !taken(*row);
        (0..Self::ROWS)
            .filter(free)
            .find_map(|row| Some((row, self.claim(row, fingerprint, tick)?)))
    }

    /// Whether a row whose first choice is this bucket may be in another of its choices.
    #[inline]
    fn has_displaced(&self, tick: u32) -> bool {
        self.displaced_until().load(Ordering::Relaxed) > tick
    }

    /// Whether the bucket records displaced rows until `expiry`, for a displaced row that lasts until then.
    #[inline]
    fn has_displaced_until(&self, expiry: u32) -> bool {
        self.displaced_until().load(Ordering::Relaxed) >= expiry
    }

    /// Whether none of the rows could be displaced a short while ago, and nothing has recovered since.
    fn is_stuck(&self, tick: u32) -> bool {
        let until = self.stuck_until().load(Ordering::Relaxed);
        // A clock that is set back must not make the time longer.
        tick < until && until <= tick.saturating_add(MOST_STUCK)
    }

    /// The first tick at which one of the rows has recovered; 0 if one of them is free.
    fn full_until(&self, tick: u32) -> u32 {
        let until = |row| if self.is_free(row, tick) { 0 } else { self.expiry_at(row) };
        (0..Self::ROWS).map(until).min().unwrap_or(0)
    }

    fn live(&self, tick: u32) -> usize {
        (0..Self::ROWS).filter(|row| !self.is_free(*row, tick)).count()
    }
}

/// A bucket that is locked.
pub(super) struct Guard<'a, B: Bucket>(&'a B);

impl<B: Bucket> Guard<'_, B> {
    /// Remembers that none of the rows can be displaced before this tick.
    pub(super) fn note_stuck(&self, tick: u32, until: u32) {
        let until = until.min(tick.saturating_add(MOST_STUCK));
        self.stuck_until().store(until, Ordering::Relaxed);
    }

    pub(super) fn note_displaced_until(&self, expiry: u32) {
        // Only ever later: an earlier record would end while another displaced row still counts. No atomic maximum is
        // needed, because all writers hold the lock.
        let until = self.displaced_until().load(Ordering::Relaxed).max(expiry);
        self.displaced_until().store(until, Ordering::Relaxed);
    }

    /// Takes out a row that moves to another bucket, with the tick at which it has recovered.
    pub(super) fn lift(&self, row: usize) -> (B::Content, u32) {
        let (content, expiry) = self.take_with_expiry(row);
        // A thread that no longer finds it here must learn that it may be elsewhere.
        self.note_displaced_until(expiry);
        self.clear(row);
        (content, expiry)
    }
}

impl<B: Bucket> Deref for Guard<'_, B> {
    type Target = B;

    #[inline]
    fn deref(&self) -> &B {
        self.0
    }
}

impl<B: Bucket> Drop for Guard<'_, B> {
    #[inline]
    fn drop(&mut self) {
        // Also when a panic unwinds, or every other thread would wait for this bucket for ever.
        self.bucket_lock().unlock();
    }
}
