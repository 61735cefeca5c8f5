//! The tokens of one process for one limit and key, and the requests that wait for more.

mod answer;
mod demand;
mod grant;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use sluicegate_core::adapter::{Debit, Outcome};
use tokio::sync::oneshot::Sender;

use self::answer::{Refusal, admitted};
use self::demand::Demand;
use super::counts::LeaseCounts;
use super::validity::{LeasedTokens, Moment, Validity};
use crate::failure::Failure;

/// With fewer tokens of a window than this, no more are requested ahead: they would be needed before they arrive.
const AHEAD: u64 = 4;

/// A process takes this fraction of what it needs until a window ends. With half, sixteen processes at 82 % of 1,000 a
/// second are never refused, and call the server for one request in twenty.
const OF_WINDOW: u64 = 2;

/// More tokens are requested when those in hand last for at most this fraction of the span.
const EARLY: u64 = 4;

/// How often tokens are requested ahead in one span at most.
const MAX_PREFETCHES: u64 = 64;

/// How many requests wait for one lease at most. Further ones are passed on to Redis.
const MAX_WAITING: usize = 16_384;

/// The tokens of one process for one limit and key.
#[derive(Debug)]
pub(super) struct Share {
    /// The limit and the key; the cost is ignored.
    pub(super) debit: Debit,
    pub(super) validity: Validity,
    /// The older lease first. The second has tokens only while the first does.
    parts: [LeasedTokens; 2],
    /// The size of the next lease.
    size: u64,
    /// How many tokens are needed in this process, and by how many requests.
    demand: Demand,
    requests: Demand,
    /// How many more leases have left nothing in the server than something, lately.
    short: u32,
    /// Since when requests have come without a long pause.
    since: u64,
    /// When a lease was last requested.
    asked: u64,
    /// When the window of the last lease ends.
    ends: u64,
    /// What the server had left at the last lease.
    left: u64,
    under_way: Option<PendingRequest>,
    waiting: VecDeque<Waiter>,
    refused: Option<Refusal>,
    /// Whether other numbers of the limit have begun to decide since the last request. Tokens that arrive are given back.
    is_left: bool,
    /// The latest time of the clock.
    seen: u64,
}

/// A lease that was requested.
#[derive(Debug, Default)]
struct PendingRequest {
    /// How many of the waiting requests it is for.
    served: usize,
    /// Whether something was given back since, so that a refusal is out of date.
    is_old: bool,
    /// Whether tokens that it leaves over are discarded.
    is_void: bool,
}

/// A request that waits for tokens.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) cost: u64,
    pub(super) answer: Sender<Result<Outcome, Failure>>,
}

/// The outcome for a request that waited.
#[derive(Debug)]
pub(super) struct WaiterAnswer {
    pub(super) waiter: Waiter,
    pub(super) outcome: Outcome,
}

/// How a request is handled.
#[derive(Debug)]
pub(super) enum Step {
    /// It is decided. The flag says whether to request more tokens.
    Decide(Outcome, bool),
    /// It waits for tokens.
    Wait,
    /// It is passed on: it needs more tokens than are in hand and there is no room for another lease, or too many requests
    /// wait.
    PassOn,
}

impl Share {
    pub(super) fn new(debit: &Debit, validity: Validity, batch: &RangeInclusive<u64>) -> Self {
        Self {
            debit: debit.clone(),
            validity,
            parts: [LeasedTokens::default(); 2],
            size: *batch.start(),
            demand: Demand::default(),
            requests: Demand::default(),
            short: 0,
            since: 0,
            asked: 0,
            ends: 0,
            left: u64::MAX,
            under_way: None,
            waiting: VecDeque::new(),
            refused: None,
            is_left: false,
            seen: 0,
        }
    }

    /// Removes tokens that are no longer valid. If the clock was set back, all tokens are discarded.
    pub(super) fn expire(&mut self, at: Moment, totals: &mut LeaseCounts) {
        let is_back = at.is_manual && at.now < self.seen;
        self.seen = if at.is_manual { at.now } else { at.now.max(self.seen) };
        let at = Moment { now: self.seen, ..at };
        // A manual clock was set back. What was refused at a later time says nothing about now.
        if is_back {
            self.refused = None;
        }
        for part in &mut self.parts {
            let is_void = is_back || at.is_manual && at.now < part.asked;
            let good = if is_void { 0 } else { self.validity.good(part, at.since(part.asked)) };
            // Counted as expired, and not given back: their place in the server's bucket has drained already.
            totals.expired += part.unspent.saturating_sub(good);
            part.unspent = part.unspent.min(good);
        }
        self.shift();
    }

    fn shift(&mut self) {
        // The older lease goes only once it is spent. Its tokens drain first, so they have to be spent first.
        if self.parts[0].unspent == 0 && self.parts[1].taken > 0 {
            self.parts = [self.parts[1], LeasedTokens::default()];
        }
    }

    pub(super) fn unspent(&self) -> u64 {
        self.parts.iter().map(|part| part.unspent).sum()
    }

    /// Whether nothing is lost if the share is dropped. Call [`expire`](Self::expire) before.
    pub(super) fn is_idle(&self) -> bool {
        let remembers = self.refused.as_ref().is_some_and(|refused| !refused.is_over(self.seen));
        !remembers && self.unspent() == 0 && self.under_way.is_none() && self.waiting.is_empty()
    }

    /// When it was last used.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Decides about `cost`, if that is possible without a call. Call [`expire`](Self::expire) before.
    pub(super) fn step(&mut self, now: u64, cost: u64, totals: &mut LeaseCounts) -> Step {
        self.is_left = false;
        // After a long pause, what was learned of the demand is out of date: it begins anew, with small leases.
        if self.requests.expected(now, self.validity.pace()) == 0 {
            self.since = now;
        }
        // Before it is decided: requests that are refused are demand as well. Without them, a process with too few
        // tokens would never ask for more.
        self.demand.add(now, self.validity.pace(), cost);
        self.requests.add(now, self.validity.pace(), 1);
        if let Some(outcome) = self.spend(now, cost) {
            totals.spent += cost;
            totals.admitted_here += 1;
            return Step::Decide(outcome, self.runs_low(now));
        }
        if self.refused.as_ref().is_some_and(|refused| refused.is_over(now)) {
            self.refused = None;
        }
        let refused = self.refused.as_ref().and_then(|refused| refused.outcome(now, cost));
        if let Some(outcome) = refused {
            totals.refused_here += 1;
            return Step::Decide(outcome, false);
        }
        // With two leases in hand and none of them enough, a third one would push tokens out that are still good.
        let has_room = self.under_way.is_some() || self.parts[1].taken == 0;
        if has_room && self.waiting.len() < MAX_WAITING { Step::Wait } else { Step::PassOn }
    }

    fn spend(&mut self, now: u64, cost: u64) -> Option<Outcome> {
        if self.unspent() < cost {
            return None;
        }
        self.take_out(cost);
        self.shift();
        // Either the older lease is spent, or the newer one is untouched.
        let part = &self.parts[0];
        let at = part.server_time(&self.validity, now);
        Some(admitted((&self.debit.limit, cost), (part, &self.validity), at))
    }

    /// Takes tokens in hand, those that drain first.
    fn take_out(&mut self, mut count: u64) {
        for part in &mut self.parts {
            let taken = count.min(part.unspent);
            part.unspent -= taken;
            count -= taken;
        }
    }

    fn runs_low(&self, now: u64) -> bool {
        let [older, newer] = &self.parts;
        let is_refused = self.refused.as_ref().is_some_and(|refused| !refused.is_over(now));
        if newer.taken > 0 || self.under_way.is_some() || is_refused {
            return false;
        }
        let Some(span) = self.validity.span() else {
            return older.taken >= AHEAD && older.unspent <= older.taken / 4;
        };
        // Not more often than 64 times in a span: where the demand jumps, one lease would follow the other.
        let expected = self.demand.expected(now, span);
        if expected < self.validity.some() || now.saturating_sub(self.asked) < span / MAX_PREFETCHES
        {
            return false;
        }
        // Tokens that will be spent or drained before more can arrive.
        let elapsed = now.saturating_sub(older.asked).saturating_add(span / EARLY);
        older.unspent.min(self.validity.good(older, elapsed)) <= expected.div_ceil(EARLY)
    }

    pub(super) fn wait(&mut self, waiter: Waiter) {
        self.waiting.push_back(waiter);
    }

    /// Takes back tokens that were spent from this share and have not drained. Returns false if they were charged
    /// elsewhere.
    pub(super) fn take_back(
        &mut self,
        receipt: [u64; 2],
        back: u64,
        at: Moment,
        totals: &mut LeaseCounts,
    ) -> bool {
        let validity = self.validity;
        let found = self.parts.iter_mut().find_map(|part| {
            let position = part.position(&validity, receipt)?;
            Some((part, position))
        });
        let Some((part, position)) = found else {
            return self.take_the_place(receipt, back, at, totals);
        };
        let good = validity.good(part, at.since(part.asked));
        if good == 0 {
            return false;
        }
        // The first tokens of the lease have drained.
        // Tokens are numbered by the order in which they drain. Of those up to `position`, the first `taken - good`
        // have drained; what is left of them is spent and still charged, and only that can become unspent again.
        // Drained tokens may not: the server has let others in for them.
        let rest =
            position.saturating_sub(part.taken - good).min(good.saturating_sub(part.unspent));
        let back = back.min(rest);
        part.unspent += back;
        totals.spent = totals.spent.saturating_sub(back);
        true
    }

    /// Takes back a charge to a bucket from an earlier lease, or from another process. If its debt has not drained, a spent
    /// token of the lease in hand, whose debt has not drained either, becomes unspent instead.
    fn take_the_place(
        &mut self,
        receipt: [u64; 2],
        back: u64,
        at: Moment,
        totals: &mut LeaseCounts,
    ) -> bool {
        let validity = self.validity;
        let Some(part) = self.parts.iter_mut().find(|part| part.taken > 0) else { return false };
        let elapsed = at.since(part.asked);
        let room = validity.good(part, elapsed).saturating_sub(part.unspent);
        // By the server's clock, because the receipt shows it.
        // The charge is not ours, but its debt is in the same bucket and still there. So one of our spent tokens stands
        // in for it. The debt of the server stays as it is, and one admission less is counted against it.
        let own = validity.undrained(receipt, part.at.saturating_add(elapsed)).min(back);
        if own == 0 || room < own {
            return false;
        }
        part.unspent += own;
        totals.spent = totals.spent.saturating_sub(own);
        true
    }

    /// Charges more for a request that was admitted, if there are enough tokens.
    pub(super) fn charge_more(&mut self, more: u64, totals: &mut LeaseCounts) -> bool {
        if self.unspent() < more {
            return false;
        }
        self.take_out(more);
        self.shift();
        totals.spent += more;
        true
    }

    /// Forgets the last refusal.
    pub(super) fn forget_refusal(&mut self) {
        self.refused = None;
        if let Some(under_way) = &mut self.under_way {
            under_way.is_old = true;
        }
    }

    /// Discards the tokens in hand and those on their way.
    pub(super) fn reset(&mut self, totals: &mut LeaseCounts) {
        totals.expired += self.unspent();
        self.parts = [LeasedTokens::default(); 2];
        self.left = u64::MAX;
        self.forget_refusal();
        if let Some(under_way) = &mut self.under_way {
            under_way.is_void = true;
        }
    }

    /// Like [`hand_over`](Self::hand_over), when other numbers of the limit begin to decide. What a lease on its way
    /// leaves over is given back when it arrives, unless these numbers decide again by then.
    pub(super) fn leave(&mut self) -> impl Iterator<Item = LeasedTokens> + use<> {
        self.is_left = true;
        self.forget_refusal();
        self.hand_over()
    }

    /// Removes and returns unspent tokens, to be given back. Call [`expire`](Self::expire) before.
    pub(super) fn hand_over(&mut self) -> impl Iterator<Item = LeasedTokens> + use<> {
        let parts = std::mem::take(&mut self.parts);
        parts.into_iter().filter(|part| part.unspent > 0)
    }
}

#[cfg(test)]
mod tests;
