//! Spending from rows of one word: one read, and one compare-and-swap.

use super::Inner;
use super::bucket::Bucket as _;
use super::moment::Moment;
use super::one_word::{OneWord, Word};
use super::spend::{NotSpent, Stepped};
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
    ) -> Result<Step, NotSpent> {
        let bucket = self.bucket(self.choice(fingerprint, 0));
        let Some(row) = bucket.find(fingerprint) else { return Err(NotSpent::Elsewhere) };
        let Some(word) = bucket.see(row, fingerprint) else { return Err(NotSpent::Busy) };
        let moment = inner.moment();
        // A row that has recovered here may be alive in another bucket.
        if word.free_at() <= moment.since && bucket.has_displaced(self.tick(moment.since)) {
            return Err(NotSpent::Elsewhere);
        }
        spend_from(limit, bucket, (row, word), moment, cost, |_| true).ok_or(NotSpent::Busy)
    }

    /// Spends from a row that is in another of its four choices.
    #[inline]
    pub(super) fn spend_displaced(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, NotSpent> {
        let first = self.bucket(self.choice(fingerprint, 0));
        let Some(version) = first.version() else { return Err(NotSpent::Busy) };
        // Read once, because reading it takes longer than a look at a row. The word that another thread writes
        // afterwards says when the row is free, which does not depend on when the clock was read.
        let moment = inner.moment();
        let tick = self.tick(moment.since);
        if !first.has_displaced(tick) {
            return Err(NotSpent::Nowhere);
        }
        for choice in 1..CHOICES {
            let other = self.bucket(self.choice(fingerprint, choice));
            let Some(row) = other.find(fingerprint).filter(|_| !std::ptr::eq(other, first)) else {
                continue;
            };
            let Some(word) = other.see(row, fingerprint) else { return Err(NotSpent::Busy) };
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
            let spent = spend_from(limit, other, (row, word), moment, cost, displaced_for_longer);
            return spent.ok_or(NotSpent::Busy);
        }
        Err(NotSpent::Nowhere)
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
) -> Option<Step> {
    let before = [now, word.free_at().saturating_sub(since)];
    let (step, _) = limit.step(before, now, cost);
    if step.is_admitted() {
        let free_at = since + step.words()[1];
        if !may(free_at) || !bucket.replace(row, word, free_at) {
            return None;
        }
    }
    Some(step)
}
