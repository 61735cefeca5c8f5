//! What one process has taken out of one limit for one key, and who waits for more.

mod demand;
mod grant;
mod outcome;
mod refused;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use sluicegate_core::adapter::{Debit, Outcome};
use tokio::sync::oneshot::Sender;

use self::demand::Demand;
use self::outcome::admitted;
use self::refused::Refused;
use super::counts::Totals;
use super::validity::{LeasedTokens, Moment, Validity};
use crate::failure::Failure;

/// Below this, tokens of a window are not fetched ahead: they would hardly be spent before.
const AHEAD: u64 = 4;

/// A process takes one part in this of what it needs until a window ends. With half, sixteen processes at 82 % of
/// 1,000 a second are never refused, and ask for one request in twenty.
const OF_WINDOW: u64 = 2;

/// More is asked for when what is there will do for no more than this part of what is planned for.
const EARLY: u64 = 4;

/// Nobody asks ahead more often than so many times in what is planned for.
const PAUSES: u64 = 64;

/// How many wait for one lease at most; others ask for themselves.
const WAITING: usize = 16_384;

/// What one process has taken out of one limit for one key.
#[derive(Debug)]
pub(super) struct Share {
    /// The limit and the key; the cost means nothing.
    pub(super) debit: Debit,
    pub(super) validity: Validity,
    /// The older first; the second has tokens only while the first does.
    parts: [LeasedTokens; 2],
    /// How much is taken at a time.
    size: u64,
    /// How much is asked for here.
    demand: Demand,
    /// When a lease was asked for last.
    asked: u64,
    /// When the window ends that was leased from last.
    ends: u64,
    /// What the server had left, when it was last asked.
    left: u64,
    under_way: Option<UnderWay>,
    waiting: VecDeque<Waiter>,
    refused: Option<Refused>,
    /// The latest that the clock has shown.
    seen: u64,
}

/// A lease that was asked for.
#[derive(Debug, Default)]
struct UnderWay {
    /// How many of those who wait it was asked for.
    served: usize,
    /// Whether something was given back since.
    is_old: bool,
    /// Whether what it leaves over is void.
    is_void: bool,
}

/// Somebody who waits for tokens.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) cost: u64,
    pub(super) answer: Sender<Result<Outcome, Failure>>,
}

/// An outcome, and whom to tell.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) waiter: Waiter,
    pub(super) outcome: Outcome,
}

/// What can be done for a request.
#[derive(Debug)]
pub(super) enum Step {
    /// It is decided; and whether it is time to fetch more.
    Decide(Outcome, bool),
    /// It has to wait for tokens.
    Wait,
    /// It takes more than is there, and there is no room for more, or too many wait already.
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
            asked: 0,
            ends: 0,
            left: u64::MAX,
            under_way: None,
            waiting: VecDeque::new(),
            refused: None,
            seen: 0,
        }
    }

    /// Lets expire what is not good any more. A clock that was set back tells nothing: all is void then.
    pub(super) fn expire(&mut self, at: Moment, totals: &mut Totals) {
        let is_back = at.is_manual && at.now < self.seen;
        self.seen = if at.is_manual { at.now } else { at.now.max(self.seen) };
        let at = Moment { now: self.seen, ..at };
        if is_back {
            self.refused = None;
        }
        for part in &mut self.parts {
            let is_void = is_back || at.is_manual && at.now < part.asked;
            let good = if is_void { 0 } else { self.validity.good(part, at.since(part.asked)) };
            totals.expired += part.unspent.saturating_sub(good);
            part.unspent = part.unspent.min(good);
        }
        self.shift();
    }

    fn shift(&mut self) {
        if self.parts[0].unspent == 0 && self.parts[1].taken > 0 {
            self.parts = [self.parts[1], LeasedTokens::default()];
        }
    }

    pub(super) fn unspent(&self) -> u64 {
        self.parts.iter().map(|part| part.unspent).sum()
    }

    /// Whether nothing is lost if it is forgotten; it has to be [expired](Self::expire).
    pub(super) fn is_idle(&self) -> bool {
        let remembers = self.refused.as_ref().is_some_and(|refused| !refused.is_over(self.seen));
        !remembers && self.unspent() == 0 && self.under_way.is_none() && self.waiting.is_empty()
    }

    /// When it was last looked at.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Decides about `cost`, as far as that is possible here. It has to be [expired](Self::expire).
    pub(super) fn step(&mut self, now: u64, cost: u64, totals: &mut Totals) -> Step {
        self.demand.add(now, self.validity.pace(), cost);
        if let Some(outcome) = self.spend(now, cost) {
            totals.spent += cost;
            totals.here += 1;
            return Step::Decide(outcome, self.runs_low(now));
        }
        if self.refused.as_ref().is_some_and(|refused| refused.is_over(now)) {
            self.refused = None;
        }
        let refused = self.refused.as_ref().and_then(|refused| refused.outcome(now, cost));
        if let Some(outcome) = refused {
            totals.refused += 1;
            return Step::Decide(outcome, false);
        }
        let has_room = self.under_way.is_some() || self.parts[1].taken == 0;
        if has_room && self.waiting.len() < WAITING { Step::Wait } else { Step::PassOn }
    }

    fn spend(&mut self, now: u64, cost: u64) -> Option<Outcome> {
        if self.unspent() < cost {
            return None;
        }
        self.take_out(cost);
        self.shift();
        // The older part is spent, or the newer has not been touched.
        let part = &self.parts[0];
        Some(admitted(part.words(&self.validity), part.server_time(&self.validity, now)))
    }

    /// Takes tokens that are there, those first that drain first.
    fn take_out(&mut self, mut count: u64) {
        for part in &mut self.parts {
            let taken = count.min(part.unspent);
            part.unspent -= taken;
            count -= taken;
        }
    }

    fn runs_low(&self, now: u64) -> bool {
        let [older, newer] = &self.parts;
        if newer.taken > 0 || self.under_way.is_some() || self.refused.is_some() {
            return false;
        }
        let Some(span) = self.validity.span() else {
            return older.taken >= AHEAD && older.unspent <= older.taken / 4;
        };
        let expected = self.demand.expected(now, span);
        if expected < self.validity.some() || now.saturating_sub(self.asked) < span / PAUSES {
            return false;
        }
        // What is spent, or has drained, by the time that more should be there.
        let elapsed = now.saturating_sub(older.asked).saturating_add(span / EARLY);
        older.unspent.min(self.validity.good(older, elapsed)) <= expected.div_ceil(EARLY)
    }

    pub(super) fn wait(&mut self, waiter: Waiter) {
        self.waiting.push_back(waiter);
    }

    /// Takes back what was charged from here and has not drained. False: it was charged elsewhere.
    pub(super) fn take_back(
        &mut self,
        receipt: [u64; 2],
        back: u64,
        at: Moment,
        totals: &mut Totals,
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
        // The first tokens have drained.
        let rest =
            position.saturating_sub(part.taken - good).min(good.saturating_sub(part.unspent));
        let back = back.min(rest);
        part.unspent += back;
        totals.spent = totals.spent.saturating_sub(back);
        true
    }

    /// Takes back what was charged to a bucket in a lease that is spent by now, or elsewhere: where its debt has
    /// not drained, it is as if a token of what is at hand had not been spent, whose place has not either.
    fn take_the_place(
        &mut self,
        receipt: [u64; 2],
        back: u64,
        at: Moment,
        totals: &mut Totals,
    ) -> bool {
        let validity = self.validity;
        let Some(part) = self.parts.iter_mut().find(|part| part.taken > 0) else { return false };
        let elapsed = at.since(part.asked);
        let room = validity.good(part, elapsed).saturating_sub(part.unspent);
        let own = validity.undrained(receipt, part.at.saturating_add(elapsed)).min(back);
        if own == 0 || room < own {
            return false;
        }
        part.unspent += own;
        totals.spent = totals.spent.saturating_sub(own);
        true
    }

    /// Charges more for what was admitted already, if that much is there.
    pub(super) fn charge_more(&mut self, more: u64, totals: &mut Totals) -> bool {
        if self.unspent() < more {
            return false;
        }
        self.take_out(more);
        self.shift();
        totals.spent += more;
        true
    }

    /// Forgets that there was nothing left.
    pub(super) fn forget_refusal(&mut self) {
        self.refused = None;
        if let Some(under_way) = &mut self.under_way {
            under_way.is_old = true;
        }
    }

    /// Makes void what is there, and what is on its way.
    pub(super) fn reset(&mut self, totals: &mut Totals) {
        totals.expired += self.unspent();
        self.parts = [LeasedTokens::default(); 2];
        self.left = u64::MAX;
        self.forget_refusal();
        if let Some(under_way) = &mut self.under_way {
            under_way.is_void = true;
        }
    }

    /// Hands over what is unspent, to be given back. It has to be [expired](Self::expire).
    pub(super) fn hand_over(&mut self) -> impl Iterator<Item = LeasedTokens> + use<> {
        let parts = std::mem::take(&mut self.parts);
        parts.into_iter().filter(|part| part.unspent > 0)
    }
}

#[cfg(test)]
mod tests;
