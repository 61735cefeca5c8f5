//! Spending from rows without waiting for their lock.

use super::Inner;
use super::bucket::Bucket as _;
use super::lock::Seen;
use super::row::{Four, Narrow};
use super::sync::spin;
use super::table::CHOICES;
use crate::key::KeyBuf;
use crate::limit::{Limit, PlainOutcome, StepResult};

/// How often a row is looked at without the lock when others are at work there, and how long the first
/// pause is; each is twice as long as the one before.
const TURNS: u32 = if cfg!(loom) { 1 } else { 5 };
const PAUSE: u32 = if cfg!(loom) { 1 } else { 8 };

/// Why a row was not spent from where it was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// It may stand in another of its choices.
    Elsewhere,
    /// There is none.
    Nowhere,
    /// Somebody else is at work there.
    Busy,
}

impl Inner {
    /// The common case: a plain limit whose row is in the first bucket that it may stand in, with nobody
    /// else at work there.
    #[inline(always)]
    pub(super) fn spend_first(
        &self,
        limit: &Limit,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<PlainOutcome, Passed> {
        match limit.slim_bucket() {
            Some(bucket) => self.spend_slim(limit.id(), bucket, key, cost),
            None => self.spend_narrow(limit, key, cost),
        }
    }

    /// What [`spend_first`](Self::spend_first) passed on; `None` where it has to be done under the lock.
    #[inline(never)]
    pub(super) fn spend_otherwise(
        &self,
        passed: Passed,
        limit: &Limit,
        key: &KeyBuf,
        cost: u64,
    ) -> Option<PlainOutcome> {
        let passed = match passed {
            Passed::Elsewhere => match self.spend_elsewhere(limit, key, cost) {
                Ok(spent) => return Some(spent),
                Err(passed) => passed,
            },
            passed => passed,
        };
        if passed == Passed::Busy { self.spend_later(limit, key, cost) } else { None }
    }

    /// Looks again after a while, in which whoever was at work there can make some more decisions with
    /// the row at hand: taking turns after each would carry it from one processor to the other all the
    /// time.
    #[cold]
    fn spend_later(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Option<PlainOutcome> {
        for turn in 0..TURNS {
            (0..PAUSE << turn).for_each(|_| spin());
            match self.spend_first(limit, key, cost) {
                Ok(spent) => return Some(spent),
                Err(Passed::Busy) => {}
                Err(_) => return None,
            }
        }
        None
    }

    #[inline(never)]
    fn spend_narrow(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Result<PlainOutcome, Passed> {
        if !limit.is_plain() {
            return Err(Passed::Nowhere);
        }
        let table = &self.narrow;
        let print = self.seed.print(limit.id(), key);
        let bucket = table.bucket(table.choice(print, 0));
        let Some(seen) = bucket.look().filter(|_| bucket.fetch_rows()) else {
            return Err(Passed::Busy);
        };
        let now = self.clock.now();
        let tick = table.tick(now);
        match bucket.find(print) {
            // A row that has recovered here may be alive elsewhere.
            Some(row) if bucket.is_live(row, tick) || !bucket.is_passed(tick) => {
                let spent = self.spend_there(limit, (bucket, seen), row, now, cost);
                spent.ok_or(Passed::Busy)
            }
            _ if bucket.is_passed(tick) => Err(Passed::Elsewhere),
            _ => Err(Passed::Nowhere),
        }
    }

    /// Spends from a row that was found without the lock.
    #[inline]
    fn spend_there(
        &self,
        limit: &Limit,
        (bucket, seen): (&Four<Narrow>, Seen),
        row: usize,
        now: u64,
        cost: u64,
    ) -> Option<PlainOutcome> {
        let before = bucket.words(row);
        // Words of two states, or of another limit's, must not be calculated with: they may overflow.
        // Measured, it costs nothing.
        if !bucket.is_still(seen) {
            return None;
        }
        let now = self.not_before(limit.since(before), now)?;
        let result = limit.step(before, now, cost);
        if let StepResult::Admit { words, fresh_in } = result {
            let bucket = bucket.lock_if_still(seen)?;
            bucket.put(row, words, self.narrow.expiry(fresh_in, now));
        }
        Some(PlainOutcome::new(result, before, now))
    }

    /// A row that stands in another of its choices.
    #[cold]
    fn spend_elsewhere(
        &self,
        limit: &Limit,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<PlainOutcome, Passed> {
        if let Some(bucket) = limit.slim_bucket() {
            return self.spend_slim_elsewhere(limit.id(), bucket, key, cost);
        }
        let table = &self.narrow;
        let print = self.seed.print(limit.id(), key);
        let first = table.bucket(table.choice(print, 0));
        let Some(seen) = first.look() else { return Err(Passed::Busy) };
        let now = self.clock.now();
        let tick = table.tick(now);
        if first.find_live(print, tick).is_some() {
            return Err(Passed::Busy);
        }
        for choice in 1..CHOICES {
            let other = table.bucket(table.choice(print, choice));
            if std::ptr::eq(other, first) {
                continue;
            }
            let Some(seen_there) = other.look() else { return Err(Passed::Busy) };
            if let Some(row) = other.find_live(print, tick) {
                let spent =
                    self.spend_there_too(limit, (first, seen), (other, seen_there), row, now, cost);
                return spent.ok_or(Passed::Busy);
            }
        }
        Err(Passed::Nowhere)
    }

    fn spend_there_too(
        &self,
        limit: &Limit,
        (first, seen): (&Four<Narrow>, Seen),
        (other, seen_there): (&Four<Narrow>, Seen),
        row: usize,
        now: u64,
        cost: u64,
    ) -> Option<PlainOutcome> {
        let table = &self.narrow;
        let before = other.words(row);
        if !other.is_still(seen_there) {
            return None;
        }
        let tick = table.tick(now);
        let now = self.not_before(limit.since(before), now)?;
        let result = limit.step(before, now, cost);
        if let StepResult::Admit { words, fresh_in } = result {
            let expiry = table.expiry(fresh_in, now);
            // What the first bucket says has to hold for longer, or at least not to have been overtaken:
            // once it does not hold, another row may be made there. Neither lock is waited for, so that
            // nobody waits for somebody who waits.
            let longer = match first.is_passed_until(expiry) {
                true => None,
                false => Some(first.lock_if_still(seen)?),
            };
            let other = other.lock_if_still(seen_there)?;
            match longer {
                // Some longer than need be, so that the next ones find it so.
                Some(first) => first.pass_until(expiry.saturating_add((expiry - tick) / 4)),
                None if first.is_still(seen) => {}
                None => return None,
            }
            other.put(row, words, expiry);
        } else if !first.is_still(seen) {
            return None;
        }
        Some(PlainOutcome::new(result, before, now))
    }

    /// The clock is read without the lock, so another thread may have come in between with a later time.
    /// Where the clock can be set back, that has to be written down under the lock.
    #[inline]
    fn not_before(&self, since: u64, now: u64) -> Option<u64> {
        if since <= now { Some(now) } else { self.behind(since) }
    }

    #[cold]
    fn behind(&self, since: u64) -> Option<u64> {
        self.clock.as_manual().is_none().then_some(since)
    }
}
