//! Requests for more tokens of a share, and what is done with them.
//!
//! A bucket that is leased from is kept half full. In an empty bucket, the place of a leased token drains at the whole rate
//! at once, while one process spends at a fraction of the rate. When each lease was charged by itself, three of four
//! tokens drained unspent, and four processes at 82 % of the limit had one request in eleven refused. So a lease takes the
//! tokens that the process is likely to need until half of the bucket has drained, judged by the last such time. If the
//! bucket is less than half full, the lease also fills it to half. That part drains unused, and takes nothing from other
//! processes, because it is more than all of them spend. More tokens are requested when those in hand last for a quarter of
//! that time. Beyond what waiting requests need, at most half of the rest is taken.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Debit};

use super::outcome::{admitted, refusal};
use super::refused::Refused;
use super::{Answered, OF_WINDOW, Share, UnderWay, Waiter};
use crate::lease::counts::Totals;
use crate::lease::validity::{LeasedTokens, SOME};
use crate::script::lease::{Lease, LeaseRequest};

impl Share {
    /// The next lease: for all requests that wait, and some tokens ahead. `None` while a lease is under way.
    pub(in crate::lease) fn request(
        &mut self,
        now: u64,
        batch: &RangeInclusive<u64>,
    ) -> Option<LeaseRequest> {
        if self.under_way.is_some() {
            return None;
        }
        let costs = || self.waiting.iter().map(|waiter| waiter.cost);
        let waited = costs().fold(0_u64, u64::saturating_add).min(1 << 52);
        let (least, served) = (costs().min().unwrap_or(1), self.waiting.len());
        let wanted = match self.validity.span() {
            Some(span) => self.of_bucket(now, span, (least, waited), batch),
            None => self.of_window(now, (least, waited), batch),
        };
        self.asked = now;
        self.under_way = Some(UnderWay { served, ..UnderWay::default() });
        Some(wanted)
    }

    /// The tokens that this process will need before a half-full bucket has drained. If the bucket is less full, they
    /// would drain before they are spent. So the server also fills the bucket to half, which takes nothing from others,
    /// because that part drains meanwhile.
    fn of_bucket(
        &mut self,
        now: u64,
        span: u64,
        (least, waited): (u64, u64),
        batch: &RangeInclusive<u64>,
    ) -> LeaseRequest {
        let expected = self.demand.expected(now, span);
        self.size = expected.clamp(*batch.start(), *batch.end());
        // A smallest batch that was configured is always taken.
        let some = if *batch.start() > 1 { SOME } else { self.validity.some() };
        let pays_off = expected >= some && *batch.end() > 1;
        let ahead = match pays_off {
            true => self.size.saturating_sub(self.unspent() / 2).max(1),
            // Few tokens are needed: one in hand would drain before it is spent.
            false => batch.start().saturating_sub(waited),
        };
        let largest = waited.max(*batch.end());
        let most = waited.saturating_add(ahead).min(largest);
        let fill = if pays_off { self.validity.half() } else { 0 };
        LeaseRequest { least, most, waited, fill, largest }
    }

    /// Half of the tokens that this process will need before the window ends. Tokens that it does not spend are lost then,
    /// so leases become smaller towards the end.
    fn of_window(
        &mut self,
        now: u64,
        (least, waited): (u64, u64),
        batch: &RangeInclusive<u64>,
    ) -> LeaseRequest {
        let needed = self.demand.until(now, self.validity.pace(), self.ends);
        self.size = (needed / OF_WINDOW).clamp(*batch.start(), *batch.end());
        // At most half of what others may need.
        let spare = self.size.min((self.left / 2).max(1));
        LeaseRequest { least, most: waited.max(spare), waited, ..LeaseRequest::default() }
    }

    /// Adds the tokens of a lease, and answers the requests that waited. Returns tokens that are to be given back: there is
    /// no room for them, or other numbers decide now.
    pub(in crate::lease) fn grant(
        &mut self,
        lease: &Lease,
        (asked, wanted): (u64, LeaseRequest),
        now: u64,
        totals: &mut Totals,
    ) -> (Vec<Answered>, Option<LeasedTokens>) {
        let UnderWay { served, is_old, is_void } = self.under_way.take().unwrap_or_default();
        let mut part = LeasedTokens::new(lease, asked);
        totals.leases += 1;
        totals.leased += lease.taken;
        self.left = self.validity.left(lease.words);
        self.ends = self.validity.ends(&part);
        self.refused = Refused::by(lease, asked, wanted, now).filter(|_| !is_old);
        let mut told = Vec::with_capacity(served);
        for waiter in self.waiting.drain(..served.min(self.waiting.len())) {
            let outcome = if waiter.cost <= part.unspent {
                part.unspent -= waiter.cost;
                totals.spent += waiter.cost;
                let debit = (&self.debit.limit, waiter.cost);
                admitted(debit, (&part, &self.validity), lease.now)
            } else {
                // The server granted less than was requested, so it has no more.
                let retry = retry_after(&self.debit, waiter.cost, lease);
                refusal(lease.words, lease.now, retry)
            };
            told.push(Answered { waiter, outcome });
        }
        if is_void {
            totals.expired += part.unspent;
            return (told, None);
        }
        (told, self.add(part))
    }

    /// Adds tokens. Returns those that are to be given back.
    pub(in crate::lease) fn add(&mut self, part: LeasedTokens) -> Option<LeasedTokens> {
        self.shift();
        match &mut self.parts {
            _ if part.taken == 0 => return None,
            _ if self.is_left => return Some(part),
            [older, _] if older.unspent == 0 => *older = part,
            [_, newer] if newer.taken == 0 => *newer = part,
            // A cost exceeded both leases. The oldest tokens drain first, so they are returned.
            [older, newer] => {
                let oldest = std::mem::replace(older, std::mem::replace(newer, part));
                return Some(oldest);
            }
        }
        None
    }

    /// Answers requests that came while the lease was under way, as far as tokens are left.
    pub(in crate::lease) fn serve_late(&mut self, now: u64, totals: &mut Totals) -> Vec<Answered> {
        let mut told = Vec::new();
        while let Some(cost) = self.waiting.front().map(|waiter| waiter.cost) {
            let Some(outcome) = self.spend(now, cost) else { break };
            totals.spent += cost;
            told.extend(self.waiting.pop_front().map(|waiter| Answered { waiter, outcome }));
        }
        told
    }

    /// The lease failed: removes and returns all waiting requests.
    pub(in crate::lease) fn fail(&mut self) -> VecDeque<Waiter> {
        self.under_way = None;
        std::mem::take(&mut self.waiting)
    }

    /// Whether requests wait for which no lease was requested.
    pub(in crate::lease) fn is_wanted(&self) -> bool {
        self.under_way.is_none() && !self.waiting.is_empty()
    }
}

/// When the server would admit this cost.
fn retry_after(debit: &Debit, cost: u64, lease: &Lease) -> Option<Duration> {
    let charge = Charge::of(debit.limit, debit.key, cost);
    let decision = refusal(lease.words, lease.now, None).decision(&charge);
    decision.statuses().next()?.retry
}
