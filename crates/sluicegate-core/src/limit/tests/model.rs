//! Every shape in the plainest form that its definition allows: whole histories, wide integers, moments
//! found by trying. Slow, and too simple to be wrong in the same way as the arithmetic.

use std::collections::BTreeMap;

use super::super::Limit;
use super::super::algorithm::Algorithm;
use crate::limit::definition::AlgorithmSpec;

/// What one key has spent, in the plainest form.
#[derive(Debug, Clone)]
pub(super) struct Model {
    limit: Limit,
    /// What is spent by other numbers, each by itself.
    others: Vec<Self>,
    /// Who decides from the next request on, if that is another.
    next: Option<Limit>,
    /// Whether anybody has come yet.
    is_met: bool,
    shape: Plain,
    /// When the gap after the last request is over.
    gap_until: u64,
    banned_until: u64,
    /// When the first of the refusals was that are counted towards a ban, and how many there were.
    strikes: (u64, u64),
}

/// What a charge was, for giving it back.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelReceipt {
    leaves: u64,
    /// The bucket as this charge left it.
    at: u64,
    spent: i128,
    anchor: Option<u64>,
}

#[derive(Debug, Clone)]
enum Plain {
    /// Debt in tokens times the period, as of the tick `at`.
    Bucket {
        at: u64,
        debt: i128,
        tick: u64,
        free: u64,
    },
    /// The last refill of a bucket that is not full.
    Stepped {
        anchor: Option<u64>,
        spent: i128,
    },
    /// What is spent in each window, counted from `origin`. Nothing comes in before the last of them,
    /// so of the windows that were passed over the newest stands for all, as a full one.
    Fixed {
        origin: Option<u64>,
        spent: BTreeMap<u64, u64>,
    },
    Sliding {
        spent: BTreeMap<u64, i128>,
        tick: u64,
    },
    /// All that ever came: when, and how much.
    Log {
        stamps: Vec<(u64, u64)>,
    },
}

impl Model {
    pub(super) fn new(limit: Limit) -> Self {
        let shape = match (limit.spec, limit.algorithm) {
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
            _ => unreachable!("concurrency has no time to model"),
        };
        let (others, next, is_met, strikes) = (Vec::new(), None, false, (0, 0));
        Self { limit, others, next, is_met, shape, gap_until: 0, banned_until: 0, strikes }
    }

    /// The earliest moment from `now` on at which `cost` fits, found by trying.
    pub(super) fn enters(&self, now: u64, cost: u64) -> Option<u64> {
        let is_let_in =
            |then| (self.limit.gap == 0 || then >= self.gap_until) && !self.is_banned(then);
        self.earliest(now, cost, |then| is_let_in(then) && self.shape_fits(now, then, cost))
    }

    fn earliest(&self, now: u64, cost: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
        if cost > self.limit.capacity() {
            return None;
        }
        let mut step = 1;
        while !fits(now + step - 1) {
            step *= 2;
        }
        // Once it fits, it fits for as long as nobody else spends.
        let (mut from, mut to) = (now, now + step - 1);
        while from < to {
            let middle = from + (to - from) / 2;
            if fits(middle) { to = middle } else { from = middle + 1 }
        }
        Some(from)
    }

    /// When a request that comes in now leaves a leaky bucket.
    pub(super) fn leaves(&self, now: u64, cost: u64) -> u64 {
        let Plain::Bucket { tick, free, .. } = self.shape else { return now };
        let (period, count) = (i128::from(self.limit.period), i128::from(self.limit.count));
        let over = self.debt(now) + (i128::from(cost) - i128::from(free)) * period;
        if over <= 0 {
            return now;
        }
        let ticks = (over + count * i128::from(tick) - 1) / (count * i128::from(tick));
        (now / tick + ticks as u64) * tick
    }

    pub(super) fn spend(&mut self, now: u64, leaves: u64, cost: u64) -> ModelReceipt {
        let debt = self.debt(now);
        let own_leave = self.leaves(now, cost);
        let Limit { period, count, .. } = self.limit;
        let mut receipt = ModelReceipt { leaves, at: 0, spent: 0, anchor: None };
        match &mut self.shape {
            Plain::Bucket { at, debt: written, tick, .. } => {
                let ticks = leaves / *tick - now / *tick;
                // Held back by another limit: nothing else leaves before it.
                let held = if leaves > own_leave { ticks * *tick * count } else { 0 };
                *written = debt.max(i128::from(held)) + i128::from(cost * period);
                *at = now / *tick;
                receipt = ModelReceipt { at: *at, spent: *written, ..receipt };
            }
            Plain::Stepped { anchor, spent } => {
                refill(anchor, spent, &self.limit, now);
                let start = anchor.unwrap_or(now);
                let dropped = (leaves - start) / period * count;
                *spent = (*spent).max(i128::from(dropped)) + i128::from(cost);
                *anchor = (*spent > 0).then_some(start);
                receipt = ModelReceipt { spent: *spent, anchor: *anchor, ..receipt };
            }
            Plain::Fixed { origin, spent } => {
                restart(self.limit.spec, origin, spent, now, period);
                let start = origin.unwrap_or(now);
                let (here, window) = ((now - start) / period, (leaves - start) / period);
                if window > here {
                    spent.insert(window - 1, count);
                }
                *spent.entry(window).or_default() += cost;
                *origin = Some(start);
                receipt.at = start + window * period;
            }
            Plain::Sliding { spent, tick } => {
                receipt.at = now / *tick / (period / *tick);
                *spent.entry(receipt.at).or_default() += i128::from(cost);
            }
            Plain::Log { stamps } => {
                let AlgorithmSpec::SlidingLog { resolution } = self.limit.spec else {
                    unreachable!()
                };
                receipt.at = leaves.div_ceil(resolution) * resolution;
                stamps.push((receipt.at, cost));
            }
        }
        if self.limit.gap > 0 {
            self.gap_until = leaves + self.limit.gap;
        }
        self.others.iter_mut().for_each(|other| other.charge(now, cost));
        receipt
    }

    /// Charges what others have admitted, as far as there is room.
    fn charge(&mut self, now: u64, cost: u64) {
        let debt = self.debt(now);
        let Limit { period, count, .. } = self.limit;
        let capacity = i128::from(self.limit.capacity());
        let wide = i128::from;
        match &mut self.shape {
            Plain::Bucket { at, debt: written, tick, .. } => {
                let most = capacity * wide(period);
                *written = (debt + wide(cost) * wide(period)).min(most).max(debt);
                *at = now / *tick;
            }
            Plain::Stepped { anchor, spent } => {
                refill(anchor, spent, &self.limit, now);
                let start = anchor.unwrap_or(now);
                *spent = (*spent + wide(cost)).min(capacity).max(*spent);
                *anchor = (*spent > 0).then_some(start);
            }
            Plain::Fixed { origin, spent } => {
                restart(self.limit.spec, origin, spent, now, period);
                let start = origin.unwrap_or(now);
                let here = (now - start) / period;
                let total = booked(spent, here, count);
                let more = cost.min(count.saturating_sub(total));
                if more > 0 {
                    *spent.entry(here).or_default() += more;
                    *origin = Some(start);
                }
            }
            Plain::Sliding { spent, tick } => {
                *spent.entry(now / *tick / (period / *tick)).or_default() += wide(cost);
            }
            Plain::Log { .. } => {}
        }
    }

    /// Charges more than fits, if need be.
    pub(super) fn force(&mut self, now: u64, cost: u64) {
        let gap_until = self.gap_until;
        let Limit { period, count, .. } = self.limit;
        if let Plain::Fixed { origin, spent } = &mut self.shape {
            restart(self.limit.spec, origin, spent, now, period);
            let start = *origin.get_or_insert(now);
            let last = spent.iter().rev().find(|(_, spent)| **spent > 0);
            let mut window = last.map_or(0, |(window, _)| *window).max((now - start) / period);
            for _ in 0..cost {
                window += u64::from(spent.get(&window) == Some(&count));
                *spent.entry(window).or_default() += 1;
            }
            self.others.iter_mut().for_each(|other| other.charge(now, cost));
        } else {
            self.spend(now, now, cost);
        }
        self.gap_until = gap_until;
    }

    pub(super) fn give(&mut self, now: u64, receipt: &ModelReceipt, cost: u64, back: u64) {
        let debt = self.debt(now);
        let Limit { period, count, .. } = self.limit;
        match &mut self.shape {
            Plain::Bucket { at, debt: written, tick, free } => {
                let last_in_line = (*at, *written) == (receipt.at, receipt.spent);
                if debt <= i128::from(*free * period) || last_in_line {
                    let drained = i128::from((now / *tick - receipt.at) * *tick * count);
                    let own = (receipt.spent - drained).clamp(0, i128::from(back * period));
                    *written -= own.min(debt);
                }
            }
            Plain::Stepped { anchor, spent } => {
                let last_in_line = (*anchor, *spent) == (receipt.anchor, receipt.spent);
                let (mut here, mut left) = (*anchor, *spent);
                refill(&mut here, &mut left, &self.limit, now);
                let (mut own_anchor, mut own) = (receipt.anchor, receipt.spent);
                refill(&mut own_anchor, &mut own, &self.limit, now);
                let waiting = left > i128::from(self.limit.capacity());
                if own_anchor == here && (last_in_line || !waiting) {
                    *spent = left - own.min(i128::from(back)).min(left);
                    *anchor = here.filter(|_| *spent > 0);
                }
            }
            Plain::Fixed { origin, spent } => {
                restart(self.limit.spec, origin, spent, now, period);
                let start = origin.unwrap_or(now);
                let here = (now - start) / period;
                let last = spent.iter_mut().rev().find(|(_, spent)| **spent > 0);
                if let Some((window, spent)) = last {
                    if *window >= here && start + window * period == receipt.at {
                        *spent -= back.min(*spent);
                    }
                }
            }
            Plain::Sliding { spent, .. } => {
                let spent = spent.entry(receipt.at).or_default();
                *spent = (*spent - i128::from(back)).max(0);
            }
            Plain::Log { stamps } => {
                let mut back = back;
                for (_, cost) in stamps.iter_mut().filter(|(stamp, _)| *stamp == receipt.at) {
                    let given = back.min(*cost);
                    *cost -= given;
                    back -= given;
                }
            }
        }
        // The gap begins with the last request that really comes.
        if self.limit.gap > 0 && back == cost && self.gap_until == receipt.leaves + self.limit.gap {
            self.gap_until = receipt.leaves;
        }
    }

    /// Writes down a refusal where that is asked for.
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
            // By these numbers alone.
            let others = std::mem::take(&mut self.others);
            match &self.shape {
                Plain::Log { .. } => self.force(now, counted),
                Plain::Sliding { .. } => self.force(now, cost),
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
            .find(|left| self.shape_fits(now, now, *left))
            .unwrap_or(0)
    }

    fn is_banned(&self, now: u64) -> bool {
        self.limit.ban > 0 && now < self.banned_until
    }

    /// From here on others come: what is spent stays.
    pub(super) fn change(&mut self, after: Limit, now: u64) {
        if !self.is_met {
            *self = Self::new(after);
            return;
        }
        let period = self.limit.period;
        if let Plain::Log { stamps } = &mut self.shape {
            stamps.retain(|(stamp, _)| stamp + period > now);
            self.limit = after;
            return;
        }
        self.next = Some(after);
    }

    /// Whether something is spent by other numbers.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Somebody comes: other numbers have an account of their own, or begin one.
    pub(super) fn meet(&mut self, now: u64) {
        self.is_met = true;
        let next = self.next.take();
        let numbers = next.unwrap_or(self.limit).algorithm.parameters();
        if self.is_over(next.unwrap_or(self.limit), now) {
            // As if nobody had ever come.
            self.others.clear();
            if let Some(after) = next.filter(|_| self.limit.algorithm.parameters() != numbers) {
                (self.shape, self.limit) = (Self::new(after).shape, after);
            }
        }
        let Some(after) = next else { return };
        if self.limit.algorithm.parameters() != numbers {
            let is_own = |other: &Self| other.limit.algorithm.parameters() == numbers;
            match self.others.iter().position(is_own) {
                Some(at) => {
                    std::mem::swap(&mut self.shape, &mut self.others[at].shape);
                    std::mem::swap(&mut self.limit, &mut self.others[at].limit);
                }
                None => self.begin(after, now),
            }
        }
        let before = self.limit.period;
        if let (Plain::Bucket { debt, free, .. }, Plain::Bucket { free: new, .. }) =
            (&mut self.shape, Self::new(after).shape)
        {
            // Two in two seconds are one in one, and how much leaves at once is no number of what is written.
            (*debt, *free) = (*debt * i128::from(after.period) / i128::from(before), new);
        }
        self.limit = after;
    }

    /// Whether nothing tells any more that anybody has come, by those who come next.
    fn is_over(&self, after: Limit, now: u64) -> bool {
        let (first, count) = self.strikes;
        let strikes = after.ban > 0 && count > 0 && now < first + after.within;
        let is_kept_out = strikes || now < self.gap_until || now < self.banned_until;
        let mut accounts = std::iter::once(self).chain(&self.others);
        !is_kept_out && accounts.all(|account| account.clone().used(now) == 0)
    }

    /// Takes over what is most of all that is spent.
    fn begin(&mut self, after: Limit, now: u64) {
        let front = Self { others: Vec::new(), ..self.clone() };
        let (mut most, mut shape) = front.rewritten(after, now);
        for other in &self.others {
            let (spent, another) = other.rewritten(after, now);
            if spent > most {
                (most, shape) = (spent, another);
            }
        }
        self.others.push(front);
        (self.shape, self.limit) = (shape, after);
    }

    /// What counts as spent: in tokens, those of a bucket times its period.
    fn used(&mut self, now: u64) -> i128 {
        let (debt, limit) = (self.debt(now), self.limit);
        match &mut self.shape {
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
                of(Some(window)).unwrap_or(0) + of(window.checked_sub(1)).unwrap_or(0)
            }
            Plain::Log { .. } => 0,
        }
    }

    /// What is spent, by other numbers, up to all that these hold.
    fn rewritten(&self, after: Limit, now: u64) -> (i128, Plain) {
        let mut before = self.clone();
        let debt = before.debt(now);
        let used = before.used(now);
        let capacity = i128::from(after.capacity());
        let old = before.limit;
        match (before.shape, Self::new(after).shape) {
            (Plain::Bucket { .. }, Plain::Bucket { tick, free, .. }) => {
                let unit = match after.algorithm {
                    Algorithm::TokenBucket(bucket) => i128::from(bucket.scale()[0]),
                    _ => unreachable!("a bucket stays one"),
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
                let used = overlap(&spent, now / old_tick, old.period / old_tick).min(capacity);
                let window = now / tick / (after.period / tick);
                (used, Plain::Sliding { spent: BTreeMap::from([(window, used)]), tick })
            }
            _ => unreachable!("its algorithm stays"),
        }
    }

    fn shape_fits(&self, now: u64, then: u64, cost: u64) -> bool {
        let Limit { period, count, .. } = self.limit;
        let wide = i128::from;
        match &self.shape {
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
                overlap(spent, then / tick, period / tick) + wide(cost) <= wide(count)
            }
            Plain::Log { stamps } => {
                let live = stamps.iter().filter(|(stamp, _)| stamp + period > then);
                live.map(|(_, cost)| wide(*cost)).sum::<i128>() + wide(cost) <= wide(count)
            }
        }
    }

    fn debt(&self, now: u64) -> i128 {
        let Plain::Bucket { at, debt, tick, .. } = self.shape else { return 0 };
        let drained = i128::from(now / tick - at) * i128::from(tick);
        (debt - drained * i128::from(self.limit.count)).max(0)
    }
}

/// Drops in what has come due.
fn refill(anchor: &mut Option<u64>, spent: &mut i128, limit: &Limit, now: u64) {
    let Some(last) = *anchor else { return };
    let steps = (now - last) / limit.period;
    *spent = (*spent - i128::from(steps) * i128::from(limit.count)).max(0);
    *anchor = (*spent > 0).then_some(last + steps * limit.period);
}

/// What is spent in the window `here` and those that follow, each of which is full but the last.
fn booked(spent: &BTreeMap<u64, u64>, here: u64, count: u64) -> u64 {
    let last = spent.iter().rev().find(|(window, spent)| **window >= here && **spent > 0);
    last.map_or(0, |(window, spent)| (window - here) * count + spent)
}

/// What two counts say is spent.
fn overlap(spent: &BTreeMap<u64, i128>, ticks: u64, period: u64) -> i128 {
    let (index, left) = (ticks / period, i128::from(period - ticks % period));
    let of = |index: Option<u64>| index.and_then(|index| spent.get(&index)).copied().unwrap_or(0);
    of(Some(index)) + of(index.checked_sub(1)) * left / i128::from(period)
}

/// Windows that begin from first use begin anew when nothing is spent in the present or a later one.
fn restart(
    spec: AlgorithmSpec,
    origin: &mut Option<u64>,
    spent: &mut BTreeMap<u64, u64>,
    now: u64,
    period: u64,
) {
    let Some(start) = *origin else { return };
    let here = (now - start) / period;
    let over = spent.iter().all(|(window, spent)| *window < here || *spent == 0);
    if spec == (AlgorithmSpec::FixedWindow { from_first: true }) && over {
        *origin = None;
        spent.clear();
    }
}
