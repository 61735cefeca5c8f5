//! Numbers that change: the model keeps an account for each set of numbers.

use std::collections::BTreeMap;

use super::Model;
use super::plain::{FULL, Plain, booked, last, overlap, refill, restart};
use crate::Limit;
use crate::algorithm::Algorithm;
use crate::limit::AlgorithmSpec;

impl Model {
    /// Changes the numbers. What was spent stays.
    pub(in crate::tests) fn change(&mut self, after: Limit, now: u64) {
        if !self.is_met {
            *self = Self::new(after);
            return;
        }
        let period = self.limit.period;
        if let Plain::Log { stamps } = &mut self.plain {
            stamps.retain(|(stamp, _)| stamp + period > now);
            self.limit = after;
            return;
        }
        self.next = Some(after);
    }

    /// Whether something is spent under other numbers.
    pub(in crate::tests) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// A request comes. Its numbers have an account, or begin one.
    pub(in crate::tests) fn meet(&mut self, now: u64) {
        self.is_met = true;
        let next = self.next.take();
        let numbers = next.unwrap_or(self.limit).algorithm.parameters();
        if self.is_over(next.unwrap_or(self.limit), now) {
            // The key is as good as new.
            self.others.clear();
            if let Some(after) = next.filter(|_| self.limit.algorithm.parameters() != numbers) {
                (self.plain, self.limit) = (Self::new(after).plain, after);
            }
        }
        let Some(after) = next else { return };
        if self.limit.algorithm.parameters() != numbers {
            let is_own = |other: &Self| other.limit.algorithm.parameters() == numbers;
            match self.others.iter().position(is_own) {
                Some(at) => {
                    std::mem::swap(&mut self.plain, &mut self.others[at].plain);
                    std::mem::swap(&mut self.limit, &mut self.others[at].limit);
                }
                None => self.begin(after, now),
            }
        }
        let before = self.limit.period;
        if let (Plain::Bucket { debt, free, .. }, Plain::Bucket { free: new, .. }) =
            (&mut self.plain, Self::new(after).plain)
        {
            // The same rate can have different periods. The number that leaves at once is not part of the stored
            // account.
            (*debt, *free) = (*debt * i128::from(after.period) / i128::from(before), new);
        }
        self.limit = after;
    }

    /// Whether everything is recovered, as seen by the numbers of the next request.
    fn is_over(&self, after: Limit, now: u64) -> bool {
        let (first, count) = self.strikes;
        let strikes = after.ban > 0 && count > 0 && now < first + after.within;
        let is_kept_out = strikes || now < self.gap_until || now < self.banned_until;
        let mut accounts = std::iter::once(self).chain(&self.others);
        !is_kept_out && accounts.all(|account| account.clone().used(now) == 0)
    }

    /// Begins an account that takes over the largest amount spent in any account.
    fn begin(&mut self, after: Limit, now: u64) {
        let front = Self { others: Vec::new(), ..self.clone() };
        let (mut most, mut plain) = front.rewritten(after, now);
        for other in &self.others {
            let (spent, another) = other.rewritten(after, now);
            if spent > most {
                (most, plain) = (spent, another);
            }
        }
        self.others.push(front);
        (self.plain, self.limit) = (plain, after);
    }

    /// The amount spent, in tokens; for a bucket, in tokens times its period.
    fn used(&mut self, now: u64) -> i128 {
        let (debt, limit) = (self.debt(now), self.limit);
        match &mut self.plain {
            Plain::Bucket { .. } => debt,
            Plain::Stepped { anchor, spent } => {
                refill(anchor, spent, &limit, now);
                *spent
            }
            Plain::Fixed { origin, spent } => {
                restart(limit.spec, origin, spent, now, limit.period);
                let here = (now - origin.unwrap_or(now)) / limit.period;
                i128::from(booked(spent, here, limit.count))
            }
            Plain::Sliding { spent, tick } => {
                let window = now / *tick / (limit.period / *tick);
                let of = |index: Option<u64>| index.and_then(|index| spent.get(&index)).copied();
                let later: i128 = spent.range(window + 1..).map(|(_, spent)| (*spent).min(1)).sum();
                let before = of(window.checked_sub(1)).unwrap_or(0).min(1);
                of(Some(window)).unwrap_or(0).min(1) + before + later
            }
            Plain::Log { .. } => 0,
        }
    }

    /// What is spent, converted to other numbers, up to their capacity.
    fn rewritten(&self, after: Limit, now: u64) -> (i128, Plain) {
        let mut before = self.clone();
        let debt = before.debt(now);
        let used = before.used(now);
        let capacity = i128::from(after.capacity());
        let old = before.limit;
        match (before.plain, Self::new(after).plain) {
            (Plain::Bucket { .. }, Plain::Bucket { tick, free, .. }) => {
                let unit = match after.algorithm {
                    Algorithm::TokenBucket(bucket) => i128::from(bucket.scale()[0]),
                    _ => unreachable!("the algorithm never changes"),
                };
                let (old, new) = (i128::from(old.period), i128::from(after.period));
                let units = debt / old * unit + (debt % old * unit + old - 1) / old;
                let debt = (units * (new / unit)).min(capacity * new);
                (debt, Plain::Bucket { at: now / tick, debt, tick, free })
            }
            (Plain::Stepped { anchor, .. }, _) => {
                let spent = used.min(capacity);
                let begun = |anchor| if anchor + after.period > now { anchor } else { now };
                (spent, Plain::Stepped { anchor: anchor.map(begun), spent })
            }
            (Plain::Fixed { origin, .. }, _) => {
                let start = origin.unwrap_or(now);
                let begun = start + (now - start) / old.period * old.period;
                let (origin, here) = match after.spec {
                    AlgorithmSpec::FixedWindow { from_first: false } => (0, now / after.period),
                    _ if begun + after.period > now => (begun, 0),
                    _ => (now, 0),
                };
                let total = used.min(capacity);
                let spent = (total > 0).then_some((here, total as u64));
                let spent = spent.into_iter().collect();
                (total, Plain::Fixed { origin: Some(origin), spent })
            }
            (Plain::Sliding { spent, tick: old_tick }, Plain::Sliding { tick, .. }) => {
                let (ticks, length) = (now / old_tick, old.period / old_tick);
                let here = ticks / length;
                // Of other numbers, a full window is more than any capacity.
                let is_full = last(&spent, here) > here
                    || here.checked_sub(1).and_then(|before| spent.get(&before)) == Some(&FULL);
                let used = if is_full { capacity } else { overlap(&spent, ticks, length, 0) };
                let used = used.min(capacity);
                let window = now / tick / (after.period / tick);
                (used, Plain::Sliding { spent: BTreeMap::from([(window, used)]), tick })
            }
            _ => unreachable!("the algorithm never changes"),
        }
    }
}
