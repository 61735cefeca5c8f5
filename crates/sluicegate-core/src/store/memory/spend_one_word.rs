//! Spending from rows of one word: one read, and one compare-and-swap.

use super::Inner;
use super::bucket::Bucket as _;
use super::moment::Moment;
use super::one_word::{OneWord, Word};
use super::spend::{SpendFailure, Stepped};
use super::table::{CHOICES, Table, ticks};
use crate::limit::Step;

impl Table<OneWord> {
    /// Spends from a row in its first bucket.
    #[inline(always)]
    pub(super) fn spend(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        let bucket = self.bucket(self.choice(fingerprint, 0));
        let Some(row) = bucket.find(fingerprint) else { return Err(SpendFailure::Elsewhere) };
        // A word that is taken out comes back as soon as a decision under the lock is made, so it is worth a pause, and
        // no search.
        let Some(word) = bucket.see(row, fingerprint) else { return Err(SpendFailure::Busy) };
        // Read after the word, so most words are of an earlier moment. A later one does no harm: the word says when the
        // row is free, and not since when.
        let moment = inner.moment();
        // A row that has recovered here may be alive in another bucket.
        if word.free_at() <= moment.since && bucket.has_displaced(self.tick(moment.since)) {
            // Spending here as well would give the key a second budget.
            return Err(SpendFailure::Elsewhere);
        }
        spend_from(limit, bucket, (row, word), moment, cost, |_| true)
    }

    /// Spends from a row that is in another of its four choices.
    #[inline]
    pub(super) fn spend_displaced(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        let first = self.bucket(self.choice(fingerprint, 0));
        // The version is read before the other buckets, so that the lock below is taken only if no thread has made a
        // row for the key in its first bucket meanwhile.
        let Some(version) = first.version() else { return Err(SpendFailure::Busy) };
        // Read once, because reading it takes longer than a look at a row. The word that another thread writes
        // afterwards says when the row is free, which does not depend on when the clock was read.
        let moment = inner.moment();
        let tick = self.tick(moment.since);
        if !first.has_displaced(tick) {
            return Err(SpendFailure::Nowhere);
        }
        for choice in 1..CHOICES {
            let other = self.bucket(self.choice(fingerprint, choice));
            let Some(row) = other.find(fingerprint).filter(|_| !std::ptr::eq(other, first)) else {
                continue;
            };
            let Some(word) = other.see(row, fingerprint) else { return Err(SpendFailure::Busy) };
            // It has recovered here. The live row, if there is one, is in a later choice, and under the lock all of
            // them are looked at together.
            if ticks(word.free_at()) <= tick {
                continue;
            }
            let mut locked = None;
            // As long as the first bucket records that the row is elsewhere, no thread begins it anew there. If the
            // record has to be prolonged, no thread may have begun it anew since it was read.
            let displaced_for_longer = |free_at| {
                let expiry = ticks(free_at);
                if first.has_displaced_until(expiry) {
                    return true;
                }
                locked = first.lock_if_unchanged(version);
                // Recorded for somewhat longer than necessary, so that the next decisions find it done.
                let until = expiry.saturating_add((expiry - tick) / 4);
                locked.as_ref().map(|first| first.note_displaced_until(until)).is_some()
            };
            return spend_from(limit, other, (row, word), moment, cost, displaced_for_longer);
        }
        Err(SpendFailure::Nowhere)
    }
}

/// Spends from a row whose word was read before, if `may` accepts the moment at which it will be free, and no other
/// thread wrote the word in between.
#[inline(always)]
fn spend_from(
    limit: &impl Stepped,
    bucket: &OneWord,
    (row, word): (usize, Word),
    Moment { now, since }: Moment,
    cost: u64,
    may: impl FnOnce(u64) -> bool,
) -> Result<Step, SpendFailure> {
    // A microsecond drains one, so the time until the row is free is the debt of this moment, and the words of the
    // bucket are made as if they had been written now. The step needs to know nothing about this table.
    let before = [now, word.free_at().saturating_sub(since)];
    let (step, _) = limit.step(before, now, cost);
    // A refusal writes nothing, so it does not even take the cache line away from other threads.
    if step.is_admitted() {
        let free_at = since + step.words()[1];
        if !may(free_at) || !bucket.replace(row, word, free_at) {
            return Err(SpendFailure::Busy);
        }
    }
    Ok(step)
}
