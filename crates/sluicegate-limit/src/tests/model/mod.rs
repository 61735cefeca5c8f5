//! Every algorithm in the plainest form that its definition allows: whole histories, wide integers, moments found by
//! trying. Slow, and too simple to be wrong in the same way as the arithmetic.

mod carried;
mod charges;
mod plain;

use std::collections::BTreeMap;

use self::plain::{FULL, Plain, last, overlap, refill, restart};
use crate::Limit;
use crate::algorithm::Algorithm;
use crate::limit::AlgorithmSpec;

/// What one key has spent, in the plainest form.
#[derive(Debug, Clone)]
pub(super) struct Model {
    limit: Limit,
    /// What is spent under other numbers, each as a model of its own.
    others: Vec<Self>,
    /// The numbers that decide from the next request on, if they have changed.
    next: Option<Limit>,
    /// Whether a request has come yet.
    is_met: bool,
    plain: Plain,
    /// When the gap after the last request is over.
    gap_until: u64,
    banned_until: u64,
    /// When the first of the refusals counted towards a ban came, and how many there were.
    strikes: (u64, u64),
}

/// The data about a charge that giving it back needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelReceipt {
    leaves: u64,
    /// The bucket as this charge left it.
    at: u64,
    spent: i128,
    anchor: Option<u64>,
}

impl Model {
    pub(super) fn new(limit: Limit) -> Self {
        let plain = match (limit.spec, limit.algorithm) {
            (AlgorithmSpec::TokenBucket { burst }, Algorithm::TokenBucket(bucket)) => {
                Plain::Bucket { at: 0, debt: 0, tick: bucket.scale()[2], free: burst }
            }
            (AlgorithmSpec::LeakyBucket { delay_after, .. }, Algorithm::TokenBucket(bucket)) => {
                Plain::Bucket { at: 0, debt: 0, tick: bucket.scale()[2], free: delay_after + 1 }
            }
            (AlgorithmSpec::SteppedBucket { .. }, _) => Plain::Stepped { anchor: None, spent: 0 },
            (AlgorithmSpec::FixedWindow { from_first }, _) => {
                Plain::Fixed { origin: (!from_first).then_some(0), spent: BTreeMap::new() }
            }
            (AlgorithmSpec::SlidingWindow, Algorithm::SlidingWindow(sliding)) => {
                Plain::Sliding { spent: BTreeMap::new(), tick: sliding.tick() }
            }
            (AlgorithmSpec::SlidingLog { .. }, _) => Plain::Log { stamps: Vec::new() },
            _ => unreachable!("concurrency does not depend on time"),
        };
        let (others, next, is_met, strikes) = (Vec::new(), None, false, (0, 0));
        Self { limit, others, next, is_met, plain, gap_until: 0, banned_until: 0, strikes }
    }

    /// The earliest moment from `now` on at which `cost` fits, found by trying.
    pub(super) fn enters(&self, now: u64, cost: u64) -> Option<u64> {
        let is_let_in =
            |then| (self.limit.gap == 0 || then >= self.gap_until) && !self.is_banned(then);
        self.earliest(now, cost, |then| is_let_in(then) && self.plain_fits(now, then, cost))
    }

    fn earliest(&self, now: u64, cost: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
        if cost > self.limit.capacity() {
            return None;
        }
        let mut step = 1;
        while !fits(now + step - 1) {
            step *= 2;
        }
        // Once it fits, it fits as long as no other request spends.
        let (mut from, mut to) = (now, now + step - 1);
        while from < to {
            let middle = from + (to - from) / 2;
            if fits(middle) { to = middle } else { from = middle + 1 }
        }
        Some(from)
    }

    /// When a request that arrives now leaves a leaky bucket.
    pub(super) fn leaves(&self, now: u64, cost: u64) -> u64 {
        let Plain::Bucket { tick, free, .. } = self.plain else { return now };
        let (period, count) = (i128::from(self.limit.period), i128::from(self.limit.count));
        let over = self.debt(now) + (i128::from(cost) - i128::from(free)) * period;
        if over <= 0 {
            return now;
        }
        let ticks = (over + count * i128::from(tick) - 1) / (count * i128::from(tick));
        (now / tick + ticks as u64) * tick
    }

    /// Whether a place can be booked that far ahead: not in a later window than one with more than the count.
    pub(super) fn books(&self, now: u64, then: u64) -> bool {
        let Plain::Sliding { spent, tick } = &self.plain else { return true };
        let window = |then: u64| then / tick / (self.limit.period / tick);
        let is_over = |spent: &i128| (i128::from(self.limit.count) + 1..FULL).contains(spent);
        window(then) == window(now) || !spent.get(&window(now)).is_some_and(is_over)
    }

    /// Records a refusal, if the limit records refusals.
    pub(super) fn refuse(&mut self, now: u64, cost: u64) {
        let counted = cost.min(self.limit.count);
        if self.limit.ban > 0 && now >= self.banned_until {
            let (first, count) = self.strikes;
            let counts = count > 0 && now < first + self.limit.within;
            self.strikes = if counts { (first, count + 1) } else { (now, 1) };
            if self.strikes.1 >= self.limit.after {
                self.banned_until = self.enters(now, cost).unwrap_or(now) + self.limit.ban;
                self.strikes = (0, 0);
            }
        }
        if self.limit.count_refused {
            // Only under these numbers.
            let others = std::mem::take(&mut self.others);
            match &self.plain {
                Plain::Log { .. } => self.record(now, counted),
                Plain::Sliding { .. } => self.record(now, cost),
                _ => {}
            }
            self.others = others;
        }
    }

    pub(super) fn remaining(&self, now: u64) -> u64 {
        if self.is_banned(now) || self.limit.gap > 0 && now < self.gap_until {
            return 0;
        }
        (0..self.limit.capacity())
            .rev()
            .map(|left| left + 1)
            .find(|left| self.plain_fits(now, now, *left))
            .unwrap_or(0)
    }

    fn is_banned(&self, now: u64) -> bool {
        self.limit.ban > 0 && now < self.banned_until
    }

    fn plain_fits(&self, now: u64, then: u64, cost: u64) -> bool {
        let Limit { period, count, .. } = self.limit;
        let wide = i128::from;
        match &self.plain {
            Plain::Bucket { .. } => {
                let most = i128::from(self.limit.capacity()) * i128::from(period);
                self.debt(then) + wide(cost) * wide(period) <= most
            }
            Plain::Stepped { anchor, spent } => {
                let (mut anchor, mut spent) = (*anchor, *spent);
                refill(&mut anchor, &mut spent, &self.limit, then);
                spent + wide(cost) <= wide(self.limit.capacity())
            }
            Plain::Fixed { origin, spent } => {
                let (mut origin, mut spent) = (*origin, spent.clone());
                restart(self.limit.spec, &mut origin, &mut spent, now, period);
                let window = (then - origin.unwrap_or(then)) / period;
                let last = spent.iter().rev().find(|(_, spent)| **spent > 0);
                last.is_none_or(|(last, spent)| {
                    window > *last || window == *last && spent + cost <= count
                })
            }
            Plain::Sliding { spent, tick } => {
                let (ticks, period) = (then / tick, period / tick);
                let used = overlap(spent, ticks, period, count);
                last(spent, 0) <= ticks / period && used + wide(cost) <= wide(count)
            }
            Plain::Log { stamps } => {
                let live = stamps.iter().filter(|(stamp, _)| stamp + period > then);
                live.map(|(_, cost)| wide(*cost)).sum::<i128>() + wide(cost) <= wide(count)
            }
        }
    }

    fn debt(&self, now: u64) -> i128 {
        let Plain::Bucket { at, debt, tick, .. } = self.plain else { return 0 };
        let drained = i128::from(now / tick - at) * i128::from(tick);
        (debt - drained * i128::from(self.limit.count)).max(0)
    }
}
