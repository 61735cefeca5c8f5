//! What a request has paid that was charged to one known limit, as most are.

use std::fmt;
use std::time::Duration;

use crate::admission::enforcer::Enforcer;
use crate::admission::known::Known;
use crate::admission::paid::AsEnforcer;
use crate::cost::account::{Account, Reply};
use crate::key::KeptKey;
use crate::limit::{AdmittedOutcome, Decision, Limit, Outcome};
use crate::store::Store;
use crate::store::charge::{Charge, Debit};
use crate::store::ticket::Ticket;
use crate::store::ticket::hold::Hold;
use crate::store::ticket::rest::Rest;
use crate::store::ticket::unserved::is_unserved;

/// A [`Ticket`] of one known limit, a quarter as large: it is moved along with the future of the response.
pub(super) struct One<E: AsEnforcer> {
    enforcer: E,
    key: KeptKey,
    cost: u64,
    account: Option<Account>,
    outcome: AdmittedOutcome,
    /// The index of the limit among those known.
    at: u32,
    /// Whether the limit is one that is held.
    is_held: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// It waits for the end of the body: for what the response says then, or only to give a place back.
    Answered(Rest),
    Settled,
}

#[inline]
fn position(enforcer: &impl AsEnforcer, limit: &Limit) -> Option<u32> {
    let known = &enforcer.as_enforcer().known;
    (0..).zip(known.iter()).find_map(|(at, known)| known.limit().is_same(limit).then_some(at))
}

impl<E: AsEnforcer> One<E> {
    /// The charge of a request that goes ahead at once, if it is to one known limit. Takes what the outcome knows of it.
    #[inline(always)]
    pub(super) fn new(enforcer: E, charge: &Charge, outcome: &mut Outcome) -> Result<Self, E> {
        let Some(debit) = charge.only() else { return Err(enforcer) };
        let Some(at) = position(&enforcer, &debit.limit) else { return Err(enforcer) };
        let Some(outcome) = outcome.take_at_once() else { return Err(enforcer) };
        let (account, is_held) = (debit.account.clone(), debit.limit.is_held());
        let (key, cost) = (KeptKey::of(&debit.key), debit.cost);
        Ok(Self { enforcer, key, cost, account, outcome, at, is_held, stage: Stage::Open })
    }

    #[inline]
    pub(super) fn settings(&self) -> &Enforcer<E::Store> {
        self.enforcer.as_enforcer()
    }

    #[inline]
    pub(super) fn known(&self) -> &Known {
        &self.settings().known[self.at()]
    }

    /// The index of the limit among those known.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at as usize
    }

    #[inline]
    pub(super) fn limit(&self) -> &Limit {
        self.known().limit()
    }

    pub(super) fn enforcer(&self) -> &E {
        &self.enforcer
    }

    /// What is left of the limit, until when, and whether that is soft.
    #[inline]
    pub(super) fn left(&self) -> (u64, Option<Duration>, bool) {
        self.outcome.left(self.limit())
    }

    /// Whether it was decided by other numbers than those of the limit.
    #[inline]
    pub(super) fn is_by_other_numbers(&self) -> bool {
        self.outcome.is_by_other_numbers()
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    #[inline(always)]
    pub(super) fn decision(&self) -> Decision {
        self.outcome.decision(self.limit(), self.cost)
    }

    #[inline]
    pub(super) fn may_wait(&self) -> bool {
        let waits = self.account.as_ref().is_some_and(Account::may_wait) || self.is_held;
        waits && self.settings().hold == Hold::End
    }

    #[inline]
    pub(super) fn rest(&self) -> Rest {
        match self.stage {
            Stage::Answered(rest) => rest,
            Stage::Open | Stage::Settled => Rest::Nothing,
        }
    }

    #[inline]
    pub(super) fn close(&mut self, reply: &dyn Reply, is_refusal: bool) {
        self.stage = Stage::Settled;
        // Nearly always what was charged stands.
        if is_refusal || self.account.is_some() || self.is_held {
            self.close_by(reply, is_refusal);
        }
    }

    fn close_by(&mut self, reply: &dyn Reply, is_refusal: bool) {
        let debit = self.debit();
        let is_running = reply.is_running();
        if !is_refusal && self.settings().hold == Hold::End && debit.waits(is_running) {
            self.stage = Stage::Answered(Rest::of(debit.account_waits(is_running)));
        } else {
            self.settle(&debit, debit.spent(reply));
        }
    }

    pub(super) fn end(&mut self, reply: Option<&dyn Reply>) {
        if let Stage::Answered(_) = self.stage {
            self.stage = Stage::Settled;
            let debit = self.debit();
            self.settle(&debit, debit.spent_at_end(reply));
        }
    }

    /// Settles a charge by tokens, now that their usage is final. Another charge waits for the end of the body.
    pub(super) fn end_usage(&mut self, reply: &dyn Reply) {
        if !self.is_held && self.account.as_ref().is_some_and(Account::is_by_usage) {
            self.end(Some(reply));
        }
    }

    /// Whether the charge is settled by the usage of tokens, where one is reported.
    pub(super) fn counts_tokens(&self) -> bool {
        self.account.as_ref().is_some_and(Account::counts_tokens)
    }

    pub(super) fn into_ticket<S: Store>(mut self, store: S) -> Ticket<S> {
        self.stage = Stage::Settled;
        let Debit { limit, key, cost, account, .. } = self.debit();
        let mut charge = Charge::new();
        // A charge that owes nothing yet has room.
        let _ = charge.add_on_account(limit, key, cost, account);
        Ticket::begun(store, charge, self.outcome.outcome())
    }

    fn debit(&self) -> Debit {
        let (key, account) = (self.key.key(), self.account.clone());
        Debit { limit: *self.limit(), key, cost: self.cost, account, is_length: false }
    }

    fn settle(&self, debit: &Debit, spent: u64) {
        let receipt = self.outcome.receipt().filter(|receipt| !receipt.is_void());
        if let (Some(receipt), true) = (receipt, spent != debit.cost) {
            self.settings().store.settle(debit, &receipt, spent);
        }
    }
}

impl<E: AsEnforcer> Drop for One<E> {
    #[inline]
    fn drop(&mut self) {
        let gives_back = match self.stage {
            Stage::Settled => false,
            Stage::Answered(_) => self.is_held,
            Stage::Open => self.is_held || is_unserved(),
        };
        if gives_back {
            self.settle(&self.debit(), 0);
        }
    }
}

impl<E: AsEnforcer> fmt::Debug for One<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("One").field("limit", self.limit()).finish_non_exhaustive()
    }
}
