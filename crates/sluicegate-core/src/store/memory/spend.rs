//! Spending from rows without waiting for their lock.

use super::Inner;
use super::bucket::Bucket as _;
use super::lock::Version;
use super::row::{FourRows, TwoWords};
use super::sync::spin;
use super::table::{CHOICES, Table};
use crate::limit::{Limit, LimitInternals, Step, TokenBucket, Words};

/// How often a row is looked at without the lock while other threads use it, and the length of the first pause. Each
/// pause is twice as long as the one before: 248 in all, after which the lock is waited for. Under loom, more turns
/// would multiply the orders to try and show nothing new.
const TURNS: u32 = if cfg!(loom) { 1 } else { 5 };
const PAUSE: u32 = if cfg!(loom) { 1 } else { 8 };

/// Why a row was not spent from in the place that was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpendFailure {
    /// The row may be in another of its choices.
    Elsewhere,
    /// There is no row.
    Nowhere,
    /// Another thread is using it.
    Busy,
}

/// What is spent from without its lock: a [plain](LimitInternals::is_plain) limit, or a part of a bucket.
pub(super) trait Stepped {
    /// The earliest moment at which the words can have been written.
    fn since(&self, words: Words) -> u64;

    /// Spends `cost`, if that may come in at once. Returns also in how many microseconds a row of the new words is
    /// free.
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>);
}

impl Stepped for Limit {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        LimitInternals::since(self, words)
    }

    #[inline]
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        LimitInternals::step(self, words, now, cost)
    }
}

impl Stepped for TokenBucket {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        self.since(words)
    }

    #[inline(always)]
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        self.step(words, now, cost)
    }
}

impl Inner {
    /// The common case: a plain limit whose row is in its first bucket, and no other thread is using the bucket. Or a
    /// carried limit in such a row, if the row has only this account.
    #[inline(always)]
    pub(super) fn spend(
        &self,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        match limit.one_word_bucket() {
            Some(bucket) => self.one_word.spend(self, bucket, fingerprint, cost),
            None => self.spend_more_words(limit, fingerprint, cost),
        }
    }

    /// Like [`spend`](Self::spend), for limits whose rows are not of one word.
    #[inline]
    pub(super) fn spend_more_words(
        &self,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        match limit.is_plain() {
            true => self.two_words.spend(self, limit, fingerprint, cost),
            false => {
                self.full_state.spend(self, limit, fingerprint, cost).ok_or(SpendFailure::Nowhere)
            }
        }
    }

    /// Continues after [`spend`](Self::spend). `None` if the decision has to be made under the lock.
    #[inline]
    pub(super) fn spend_again(
        &self,
        failure: SpendFailure,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
    ) -> Option<Step> {
        let failure = match failure {
            SpendFailure::Elsewhere => {
                let spent = match limit.one_word_bucket() {
                    Some(bucket) => self.one_word.spend_displaced(self, bucket, fingerprint, cost),
                    None => self.two_words.spend_displaced(self, limit, fingerprint, cost),
                };
                match spent {
                    Ok(spent) => return Some(spent),
                    Err(failure) => failure,
                }
            }
            failure => failure,
        };
        if failure == SpendFailure::Busy {
            self.spend_after_pause(limit, fingerprint, cost)
        } else {
            None
        }
    }

    /// Tries again after a pause. Meanwhile the other thread can make some more decisions with the row in its cache.
    /// Alternating after each decision would move the row between the processors all the time.
    #[cold]
    fn spend_after_pause(&self, limit: &Limit, fingerprint: u64, cost: u64) -> Option<Step> {
        for turn in 0..TURNS {
            (0..PAUSE << turn).for_each(|_| spin());
            match self.spend(limit, fingerprint, cost) {
                Ok(spent) => return Some(spent),
                Err(SpendFailure::Busy) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The clock is read without the lock, so another thread may have written a later time. If the clock can be set
    /// back, that has to be recorded under the lock.
    #[inline]
    fn not_before(&self, since: u64, now: u64) -> Option<u64> {
        if since <= now { Some(now) } else { self.behind(since) }
    }

    #[cold]
    fn behind(&self, since: u64) -> Option<u64> {
        self.clock.clock.as_manual().is_none().then_some(since)
    }
}

impl Table<FourRows<TwoWords>> {
    /// Spends from a row in its first bucket.
    #[inline(never)]
    pub(super) fn spend(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        let bucket = self.bucket(self.choice(fingerprint, 0));
        // Everything is read between two looks at the version. If it is the same, no thread has written in between.
        let Some(version) = bucket.version().filter(|_| bucket.fetch_rows()) else {
            return Err(SpendFailure::Busy);
        };
        let now = inner.clock.now();
        let tick = self.tick(now);
        match bucket.find(fingerprint) {
            // A row that has recovered here may be alive in another bucket.
            Some(row) if bucket.is_live(row, tick) || !bucket.has_displaced(tick) => {
                let spent = self.spend_from(inner, limit, (bucket, version), row, now, cost);
                spent.ok_or(SpendFailure::Busy)
            }
            // What says that there is no row may have been read while another thread wrote. That needs no check: it
            // leads to another search, in the end under the lock.
            _ if bucket.has_displaced(tick) => Err(SpendFailure::Elsewhere),
            _ => Err(SpendFailure::Nowhere),
        }
    }

    /// Spends from a row that was found without the lock.
    #[inline]
    fn spend_from(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        (bucket, version): (&FourRows<TwoWords>, Version),
        row: usize,
        now: u64,
        cost: u64,
    ) -> Option<Step> {
        let before = bucket.words(row);
        // Words of two different states, or of another limit, must not be used for calculations, which may overflow.
        // The check costs nothing measurable.
        if !bucket.is_unchanged(version) {
            return None;
        }
        let now = inner.not_before(limit.since(before), now)?;
        let (step, fresh_in) = limit.step(before, now, cost);
        if step.is_admitted() {
            // One compare-and-swap takes the lock and confirms all reads since `version`. If it fails, nothing was
            // written, and the step is worked out anew from new words.
            let bucket = bucket.lock_if_unchanged(version)?;
            bucket.put(row, step.words(), self.expiry(fresh_in, now));
        }
        Some(step)
    }

    /// Spends from a row that is in another of its choices.
    #[inline]
    fn spend_displaced(
        &self,
        inner: &Inner,
        limit: &Limit,
        fingerprint: u64,
        cost: u64,
    ) -> Result<Step, SpendFailure> {
        let first = self.bucket(self.choice(fingerprint, 0));
        let Some(version) = first.version() else { return Err(SpendFailure::Busy) };
        let now = inner.clock.now();
        let tick = self.tick(now);
        // It was not there a moment ago. Another thread has moved or made it, so the search begins again.
        if first.find_live(fingerprint, tick).is_some() {
            return Err(SpendFailure::Busy);
        }
        for choice in 1..CHOICES {
            let other = self.bucket(self.choice(fingerprint, choice));
            if std::ptr::eq(other, first) {
                continue;
            }
            // A bucket that is locked may hold the row, so "there is none" cannot be said of it.
            let Some(other_version) = other.version() else { return Err(SpendFailure::Busy) };
            if let Some(row) = other.find_live(fingerprint, tick) {
                let spent = self.spend_from_displaced(
                    inner,
                    limit,
                    (first, version),
                    (other, other_version, row),
                    now,
                    cost,
                );
                return spent.ok_or(SpendFailure::Busy);
            }
        }
        Err(SpendFailure::Nowhere)
    }

    fn spend_from_displaced(
        &self,
        inner: &Inner,
        limit: &impl Stepped,
        (first, version): (&FourRows<TwoWords>, Version),
        (other, other_version, row): (&FourRows<TwoWords>, Version, usize),
        now: u64,
        cost: u64,
    ) -> Option<Step> {
        let before = other.words(row);
        // As for a row in its first bucket: no calculation with words that another thread was writing.
        if !other.is_unchanged(other_version) {
            return None;
        }
        let tick = self.tick(now);
        let now = inner.not_before(limit.since(before), now)?;
        let (step, fresh_in) = limit.step(before, now, cost);
        if step.is_admitted() {
            let expiry = self.expiry(fresh_in, now);
            // The first bucket must record the displaced row for longer, or at least must not have changed: once the
            // record ends, another row may be made there. Neither lock is waited for, so that no thread waits for a
            // thread that waits.
            let longer = match first.has_displaced_until(expiry) {
                true => None,
                false => Some(first.lock_if_unchanged(version)?),
            };
            let other = other.lock_if_unchanged(other_version)?;
            match longer {
                // Recorded for somewhat longer than necessary, so that the next decisions find it done.
                Some(first) => {
                    first.note_displaced_until(expiry.saturating_add((expiry - tick) / 4));
                }
                None if first.is_unchanged(version) => {}
                None => return None,
            }
            other.put(row, step.words(), expiry);
        } else if !first.is_unchanged(version) {
            // Another row of the key may have been made there, and then that one decides. A refusal has written nothing,
            // so it is enough to look.
            return None;
        }
        Some(step)
    }
}
