//! Spending from slim rows: one look, and one compare-and-swap.

use super::Inner;
use super::bucket::Bucket as _;
use super::moment::Moment;
use super::slim::{Slim, Word};
use super::spend::Passed;
use super::table::{CHOICES, ticks};
use crate::key::KeyBuf;
use crate::limit::{PlainOutcome, StepResult, TokenBucket};

impl Inner {
    /// [`spend_first`](Self::spend_first) for limits that have such rows.
    #[inline(always)]
    pub(super) fn spend_slim(
        &self,
        id: u64,
        limit: &TokenBucket,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<PlainOutcome, Passed> {
        let table = &self.slim;
        let print = self.seed.print(id, key);
        let bucket = table.bucket(table.choice(print, 0));
        let Some(row) = bucket.find(print) else { return Err(Passed::Elsewhere) };
        let Some(word) = bucket.see(row, print) else { return Err(Passed::Busy) };
        let moment = self.moment();
        // A row that has recovered here may be alive elsewhere.
        if word.free_at() <= moment.since && bucket.is_passed(table.tick(moment.since)) {
            return Err(Passed::Elsewhere);
        }
        spend_from(limit, bucket, (row, word), moment, cost, |_| true).ok_or(Passed::Busy)
    }

    /// A row that stands in another of its choices.
    #[cold]
    pub(super) fn spend_slim_elsewhere(
        &self,
        id: u64,
        limit: &TokenBucket,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<PlainOutcome, Passed> {
        let table = &self.slim;
        let print = self.seed.print(id, key);
        let first = table.bucket(table.choice(print, 0));
        let Some(seen) = first.look() else { return Err(Passed::Busy) };
        if !first.is_passed(table.tick(self.moment().since)) {
            return Err(Passed::Nowhere);
        }
        for choice in 1..CHOICES {
            let other = table.bucket(table.choice(print, choice));
            let Some(row) = other.find(print).filter(|_| !std::ptr::eq(other, first)) else {
                continue;
            };
            let Some(word) = other.see(row, print) else { return Err(Passed::Busy) };
            let moment = self.moment();
            let tick = table.tick(moment.since);
            if ticks(word.free_at()) <= tick {
                continue;
            }
            let mut locked = None;
            // As long as the first bucket says that the row is elsewhere, nobody begins it anew there. If
            // it has to say so for longer, nobody must have done that since it was looked at.
            let passed_for_longer = |free_at| {
                let expiry = ticks(free_at);
                if first.is_passed_until(expiry) {
                    return true;
                }
                locked = first.lock_if_still(seen);
                // Some longer than need be, so that the next ones find it so.
                let until = expiry.saturating_add((expiry - tick) / 4);
                locked.as_ref().map(|first| first.pass_until(until)).is_some()
            };
            let spent = spend_from(limit, other, (row, word), moment, cost, passed_for_longer);
            return spent.ok_or(Passed::Busy);
        }
        Err(Passed::Nowhere)
    }
}

/// Spends from a row whose word was seen, if `may` agrees to when it will be free and nobody else comes in
/// between.
#[inline(always)]
fn spend_from(
    limit: &TokenBucket,
    bucket: &Slim,
    (row, word): (usize, Word),
    Moment { now, since }: Moment,
    cost: u64,
    may: impl FnOnce(u64) -> bool,
) -> Option<PlainOutcome> {
    let before = [now, word.free_at().saturating_sub(since)];
    let result = limit.step(before, now, cost);
    if let StepResult::Admit { words: [_, debt], .. } = result {
        let free_at = since + debt;
        if !may(free_at) || !bucket.replace(row, word, free_at) {
            return None;
        }
    }
    Some(PlainOutcome::new(result, before, now))
}
