//! Three rows of one word in one cache line. Most token buckets need no more.
//!
//! If a microsecond drains one unit of the debt, the debt and its tick are one number: the moment at which nothing is
//! left of it. A single word is written by compare-and-swap, without the lock. The lock is taken to give a row to
//! another key, to move it, or to decide about several rows at once. It takes the word out and leaves a mark that no
//! thread spends from.
//!
//! Only the table knows this form; `State` and `Limit` do not. The word also tells when the row has recovered. Eleven
//! bits above the moment count how often the row changed keys, so that a compare-and-swap cannot mistake the word of
//! another key for the one that it read. If the clock is set back, which only happens in tests, time stands still for
//! these rows and goes on from there.
//!
//! There are 1.8 rows for each key, so that one key in fourteen has to be looked up in a second bucket, instead of
//! one in seven. With millions of keys that lookup costs more than everything else, because the processor mispredicts
//! and waits for memory twice. Measured with 10 million keys on one thread: 168 ns with two words under the lock of
//! the bucket, 119 ns with one word.

use super::bucket::Bucket;
use super::lock::Lock;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use super::table::ticks;

const ROWS: usize = 3;

/// Bits of a word for the moment at which nothing is left, in microseconds since the table was made. The bits above
/// count how often the row changed keys, so that a word looks different when it belongs to another key.
const BITS: u32 = 53;

/// In place of the moment: the word is taken out.
const TAKEN: u64 = (1 << BITS) - 1;

/// The last moment that a word can store.
pub(super) const LAST: u64 = TAKEN - 1;

#[derive(Default)]
#[repr(align(64))]
pub(super) struct OneWord {
    lock: Lock,
    displaced_until: AtomicU32,
    stuck_until: AtomicU32,
    fingerprints: [AtomicU64; ROWS],
    words: [AtomicU64; ROWS],
}

/// What was read from a row's word.
#[derive(Clone, Copy)]
pub(super) struct Word(u64);

impl Word {
    /// The moment at which nothing is left of what was spent.
    #[inline]
    pub(super) fn free_at(self) -> u64 {
        self.0 & TAKEN
    }

    #[inline]
    fn with(self, free_at: u64) -> u64 {
        (self.0 & !TAKEN) | free_at
    }

    fn of_another(self) -> Self {
        Self(self.0.wrapping_add(1 << BITS))
    }
}

impl OneWord {
    /// The word of `fingerprint`, if the row still belongs to it and the word is not taken out.
    #[inline(always)]
    pub(super) fn see(&self, row: usize, fingerprint: u64) -> Option<Word> {
        // The word first, and both with acquire. `put` publishes the word of a new key after its fingerprint, so a word
        // of another key is never read together with the old fingerprint.
        let word = Word(self.words[row % ROWS].load(Ordering::Acquire));
        // A thread that gives the row to another key takes the word out first.
        let is_own = self.fingerprint_at(row) == fingerprint;
        (is_own && word.free_at() != TAKEN).then_some(word)
    }

    /// Writes another moment, if the word is still the one that was read.
    #[inline(always)]
    pub(super) fn replace(&self, row: usize, version: Word, free_at: u64) -> bool {
        // The word is the whole state of the key, so nothing else has to be published with it, and relaxed order is
        // enough. A word that was changed and changed back is no danger: an equal word is an equal state, and the count
        // of keys tells the keys apart. To be mistaken, a row would have to change keys a multiple of 2,048 times
        // between a read and a write, and come back to the same microsecond.
        let new = version.with(free_at);
        let word = &self.words[row % ROWS];
        word.compare_exchange(version.0, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn word(&self, row: usize) -> Word {
        Word(self.words[row].load(Ordering::Relaxed))
    }
}

impl Bucket for OneWord {
    type Content = u64;

    const ROWS: usize = ROWS;

    /// Rows are small enough to have many more rows than keys. With a fifth more, one row in six would be in the
    /// bucket that is searched second; with this, one in fourteen is.
    const SPARE: usize = 80;

    #[inline]
    fn bucket_lock(&self) -> &Lock {
        &self.lock
    }

    #[inline]
    fn displaced_until(&self) -> &AtomicU32 {
        &self.displaced_until
    }

    fn stuck_until(&self) -> &AtomicU32 {
        &self.stuck_until
    }

    #[inline(always)]
    fn fingerprint_at(&self, row: usize) -> u64 {
        self.fingerprints[row % ROWS].load(Ordering::Acquire)
    }

    fn expiry_at(&self, row: usize) -> u32 {
        ticks(self.word(row).free_at())
    }

    fn claim(&self, row: usize, fingerprint: u64, tick: u32) -> Option<u64> {
        // Under the lock, but the owner of the row may spend from it at any moment, because spending does not take the
        // lock. So the check that the row is free and the claim are one compare-and-swap.
        let before = self.word(row);
        if self.fingerprint_at(row) != 0 && ticks(before.free_at()) > tick {
            return None;
        }
        // The count of keys goes up first, and the fingerprint is written after the word is taken: a thread that read the
        // old fingerprint fails to replace the word, and one that reads the new one finds it taken out.
        let taken = before.of_another().with(TAKEN);
        let word = &self.words[row];
        word.compare_exchange(before.0, taken, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        // Release: a thread that finds this fingerprint also sees that the word is taken out.
        self.fingerprints[row].store(fingerprint, Ordering::Release);
        Some(0)
    }

    fn take(&self, row: usize) -> u64 {
        // No other thread takes it out or gives it to another key, so only the moment can have changed.
        let taken = self.word(row).with(TAKEN);
        // A swap, because a thread may have spent since the line above. What it wrote is what comes out.
        match Word(self.words[row].swap(taken, Ordering::Relaxed)).free_at() {
            // The row was claimed for this charge and is still empty.
            TAKEN => 0,
            free_at => free_at,
        }
    }

    fn take_with_expiry(&self, row: usize) -> (u64, u32) {
        let free_at = self.take(row);
        (free_at, ticks(free_at))
    }

    fn put(&self, row: usize, free_at: u64, _: u32) {
        // While the word is taken out, no other thread writes it, so this needs no compare-and-swap. Release: see
        // [`see`](OneWord::see). At most `LAST`, so that no moment looks like the mark.
        self.words[row].store(self.word(row).with(free_at.min(LAST)), Ordering::Release);
    }

    fn clear(&self, row: usize) {
        // The word stays as it is. Callers have taken it out, so a thread that still knows the old fingerprint spends
        // nothing from a row that is given up.
        self.fingerprints[row].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rows_fill_a_cache_line() {
        assert_eq!(size_of::<OneWord>(), 64);
    }

    #[test]
    fn the_word_of_another_key_looks_different() {
        let bucket = OneWord::default();
        bucket.claim(0, 7, 0).expect("it is empty");
        bucket.put(0, 50, 0);
        let version = bucket.see(0, 7).expect("a word");
        bucket.claim(0, 8, 1).expect("it has recovered");
        bucket.put(0, 50, 0);
        assert!(bucket.see(0, 7).is_none());
        assert!(!bucket.replace(0, version, 60));
        let version = bucket.see(0, 8).expect("a word");
        assert!(bucket.replace(0, version, 60));
    }

    #[test]
    fn a_word_that_is_taken_out_is_not_spent_from() {
        let bucket = OneWord::default();
        bucket.claim(1, 7, 0).expect("it is empty");
        assert!(bucket.see(1, 7).is_none());
        bucket.put(1, 50, 0);
        let version = bucket.see(1, 7).expect("a word");
        assert_eq!(bucket.take(1), 50);
        assert!(bucket.see(1, 7).is_none());
        assert!(!bucket.replace(1, version, 60));
    }

    #[test]
    fn a_row_that_was_spent_from_meanwhile_is_not_claimed() {
        let bucket = OneWord::default();
        bucket.claim(2, 7, 0).expect("it is empty");
        bucket.put(2, 5 << 16, 0);
        assert!(bucket.claim(2, 8, 4).is_none());
        assert!(bucket.claim(2, 8, 5).is_some());
    }

    #[test]
    fn a_full_bucket_is_stuck_until_a_row_recovers_and_no_longer_than_four_seconds() {
        let bucket = OneWord::default();
        assert_eq!(bucket.full_until(0), 0, "its rows are free");
        for row in 0..ROWS {
            bucket.claim(row, 7 + row as u64, 0).expect("it is empty");
            bucket.put(row, (9 + row as u64) << 16, 0);
        }
        assert_eq!([bucket.full_until(0), bucket.full_until(8), bucket.full_until(9)], [9, 9, 0]);
        let guard = bucket.lock();
        let is_stuck = |ticks: [u32; 4]| ticks.map(|tick| guard.is_stuck(tick));
        guard.note_stuck(100, 109);
        assert_eq!(is_stuck([100, 108, 109, 110]), [true, true, false, false]);
        guard.note_stuck(100, 5_000);
        assert_eq!(is_stuck([100, 163, 164, 5_000]), [true, true, false, false]);
        // The clock was set back.
        assert_eq!(is_stuck([0, 50, 99, 100]), [false, false, false, true]);
        // A row was free after all.
        guard.note_stuck(100, 0);
        assert_eq!(is_stuck([0, 99, 100, 101]), [false; 4]);
    }
}
