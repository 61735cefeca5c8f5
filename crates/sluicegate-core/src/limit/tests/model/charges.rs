//! Charging the model, and giving back.

use super::plain::{Plain, booked, refill, restart};
use super::{Model, ModelReceipt};
use crate::limit::Limit;
use crate::limit::definition::AlgorithmSpec;

impl Model {
    pub(in crate::limit::tests) fn spend(
        &mut self,
        now: u64,
        leaves: u64,
        cost: u64,
    ) -> ModelReceipt {
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
                *spent.entry(now / *tick / (period / *tick)).or_default() += wide(cost);
            }
            Plain::Log { .. } => {}
        }
    }

    /// Charges the cost even if it does not fit.
    pub(in crate::limit::tests) fn force(&mut self, now: u64, cost: u64) {
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
            self.spend(now, now, cost);
        }
        self.gap_until = gap_until;
    }

    pub(in crate::limit::tests) fn give(
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
        // The gap begins with the last request that was not given back.
        if self.limit.gap > 0 && back == cost && self.gap_until == receipt.leaves + self.limit.gap {
            self.gap_until = receipt.leaves;
        }
    }
}
