//! Charging the model, and giving back.

use super::plain::{FULL, Plain, booked, count_full, last, refill, restart};
use super::{Model, ModelReceipt};
use crate::Limit;
use crate::limit::AlgorithmSpec;

impl Model {
    pub(in crate::tests) fn spend(&mut self, now: u64, leaves: u64, cost: u64) -> ModelReceipt {
        let debt = self.debt(now);
        let own_leave = self.leaves(now, cost);
        let Limit { period, count, .. } = self.limit;
        let mut receipt = ModelReceipt { leaves, at: 0, spent: 0, anchor: None };
        match &mut self.plain {
            Plain::Bucket { at, debt: written, tick, .. } => {
                let ticks = leaves / *tick - now / *tick;
                // If another limit holds the request back, nothing else leaves before it.
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
                let window = |then: u64| then / *tick / (period / *tick);
                count_full(spent, window(now), count);
                receipt.at = window(leaves).max(last(spent, window(now)));
                if receipt.at > last(spent, window(now)) {
                    spent.insert(receipt.at - 1, FULL);
                }
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

    /// Charges what other numbers have admitted, as far as there is room.
    pub(super) fn charge(&mut self, now: u64, cost: u64) {
        let debt = self.debt(now);
        let Limit { period, count, .. } = self.limit;
        let capacity = i128::from(self.limit.capacity());
        let wide = i128::from;
        match &mut self.plain {
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
                let here = now / *tick / (period / *tick);
                *spent.entry(last(spent, here)).or_default() += wide(cost);
            }
            Plain::Log { .. } => {}
        }
    }

    /// Records an attempt that was refused.
    pub(super) fn record(&mut self, now: u64, cost: u64) {
        let gap_until = self.gap_until;
        let Limit { period, count, .. } = self.limit;
        match &mut self.plain {
            Plain::Sliding { spent, tick } if last(spent, 0) > now / *tick / (period / *tick) => {
                let (_, spent) = spent.iter_mut().next_back().expect("a later window");
                *spent = (*spent + i128::from(cost)).min(i128::from(count).max(*spent));
            }
            _ => {
                self.spend(now, now, cost);
            }
        }
        self.gap_until = gap_until;
    }

    /// Charges what a log has no room for, place by place as they become free.
    fn force_log(&mut self, now: u64, cost: u64) {
        let Limit { period, count, .. } = self.limit;
        let Plain::Log { stamps } = &mut self.plain else { unreachable!() };
        let spent: u64 =
            stamps.iter().filter(|(stamp, _)| stamp + period > now).map(|(_, cost)| cost).sum();
        let fits = cost.min(count.saturating_sub(spent));
        self.spend(now, now, fits);
        let over = cost - fits;
        let Plain::Log { stamps } = &mut self.plain else { unreachable!() };
        for (stamp, _) in stamps.iter_mut().filter(|(stamp, _)| *stamp + period > now) {
            *stamp += over / count * period;
        }
        if let Some(rest) = Some(over % count).filter(|rest| *rest > 0) {
            let then = self.earliest(now, rest, |then| self.plain_fits(now, then, rest));
            self.spend(now, then.expect("less than the count"), rest);
        }
    }

    /// The same of a sliding window, window by window.
    fn force_sliding(&mut self, now: u64, cost: u64) {
        let Limit { period, count, .. } = self.limit;
        let Plain::Sliding { spent, tick } = &mut self.plain else { unreachable!() };
        let (count, mut cost) = (i128::from(count), i128::from(cost));
        let here = now / *tick / (period / *tick);
        count_full(spent, here, self.limit.count);
        let mut window = last(spent, here);
        let held = spent.get(&here).copied().unwrap_or(0);
        if window == here && held > count {
            cost += (held - count).min(count);
            spent.insert(here, count);
        }
        loop {
            let filled = spent.entry(window).or_default();
            *filled += cost;
            cost = *filled - count;
            if cost <= 0 {
                break;
            }
            *filled = FULL;
            window += 1;
        }
    }

    /// Charges the cost even if it does not fit.
    pub(in crate::tests) fn force(&mut self, now: u64, cost: u64) {
        let gap_until = self.gap_until;
        let Limit { period, count, .. } = self.limit;
        if let Plain::Fixed { origin, spent } = &mut self.plain {
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
            match &self.plain {
                Plain::Log { .. } => self.force_log(now, cost),
                Plain::Sliding { .. } => {
                    self.force_sliding(now, cost);
                    self.others.iter_mut().for_each(|other| other.charge(now, cost));
                }
                _ => {
                    self.spend(now, now, cost);
                }
            }
        }
        self.gap_until = gap_until;
    }

    pub(in crate::tests) fn give(
        &mut self,
        now: u64,
        receipt: &ModelReceipt,
        cost: u64,
        back: u64,
    ) {
        let debt = self.debt(now);
        let Limit { period, count, .. } = self.limit;
        match &mut self.plain {
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
            Plain::Sliding { spent, tick } => {
                let here = now / *tick / (period / *tick);
                // While later windows are spent, only what is spent in the last of them is given back.
                if last(spent, here) == here.max(receipt.at) && receipt.at + 1 >= here {
                    count_full(spent, here, count);
                    let spent = spent.entry(receipt.at).or_default();
                    *spent = if *spent == FULL { i128::from(count) } else { *spent };
                    *spent = (*spent - i128::from(back)).max(0);
                }
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
        // The gap begins with the last request that was not given back.
        if self.limit.gap > 0 && back == cost && self.gap_until == receipt.leaves + self.limit.gap {
            self.gap_until = receipt.leaves;
        }
    }
}
