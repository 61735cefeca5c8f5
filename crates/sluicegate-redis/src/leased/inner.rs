use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::adapter::remote::receipt_words;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::store::Store;
use tokio::sync::oneshot;

use super::LeasedFuture;
use super::fetch::passed;
use super::share::{Step, Waiter};
use super::table::Table;
use super::worth::{Moment, Worth};
use crate::report;
use crate::shared::Shared;
use crate::store::Redis;

/// By how much the machine's clock can show too little of what has passed, in microseconds.
const SLACK: u64 = 20;

/// What all clones share.
pub(super) struct Inner {
    pub(super) redis: Redis,
    pub(super) batch: RangeInclusive<u64>,
    pub(super) table: Table,
    pub(super) clock: Clock,
    pub(super) passed_on: AtomicU64,
}

impl Inner {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.redis.0
    }

    /// Read before a lock is waited for, so that nobody waits for the clock.
    #[inline]
    pub(super) fn moment(&self) -> Moment {
        let is_manual = self.clock.as_manual().is_some();
        Moment { now: self.clock.now(), slack: if is_manual { 0 } else { SLACK }, is_manual }
    }

    /// What is owed, and what it is worth, if that can be leased.
    #[inline]
    fn leasable<'c>(&self, charge: &'c Charge) -> Option<(&'c Debit, Worth)> {
        if charge.len() != 1 || charge.patience().is_some() {
            return None;
        }
        let debit = charge.debits().next()?;
        let worth = Worth::of(&debit.limit)?;
        let fits = debit.cost > 0 && debit.cost <= worth.most().min(*self.batch.end());
        fits.then_some((debit, worth))
    }

    fn pass_on(&self, charge: &Charge) -> Answer<LeasedFuture> {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
        report::passed_on();
        passed(self.redis.take(charge))
    }

    pub(super) fn take(self: &Arc<Self>, charge: &Charge) -> Answer<LeasedFuture> {
        let Some((debit, worth)) = self.leasable(charge) else { return self.pass_on(charge) };
        let (at, mut shelf) = (self.moment(), self.table.lock(debit));
        let found = shelf.find_or_make(debit, worth, &self.batch, at);
        let Some((share, totals)) = found else {
            drop(shelf);
            return self.pass_on(charge);
        };
        share.tidy(at, totals);
        match share.step(at.now, debit.cost, totals) {
            Step::Decide(outcome, false) => Answer::Now(Ok(outcome)),
            // A clock that a test turns meanwhile would step back when the question arrives.
            Step::Decide(outcome, true) if at.is_manual => Answer::Now(Ok(outcome)),
            Step::Decide(outcome, true) => {
                let wanted = if self.can_ask() { share.ask(at.now, &self.batch) } else { None };
                if wanted.is_some() {
                    shelf.tell();
                }
                drop(shelf);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Now(Ok(outcome))
            }
            Step::Wait if self.can_ask() => {
                let (sender, receiver) = oneshot::channel();
                share.wait(Waiter { cost: debit.cost, answer: sender });
                let wanted = share.ask(at.now, &self.batch);
                if wanted.is_some() {
                    shelf.tell();
                }
                drop(shelf);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Later(LeasedFuture::waiting(receiver, self, debit))
            }
            Step::Wait | Step::PassOn => {
                drop(shelf);
                self.pass_on(charge)
            }
        }
    }

    /// Whether there is anybody to be asked; else the store itself says what is wrong.
    fn can_ask(&self) -> bool {
        let shared = self.shared();
        shared.runtime.handle().is_some() && !shared.route.is_shut()
    }

    pub(super) fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if spent == debit.cost || !self.settle_here(debit, receipt, spent) {
            self.redis.settle(debit, receipt, spent);
        }
    }

    fn settle_here(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        if Worth::of(&debit.limit).is_none() {
            return false;
        }
        let (at, mut shelf) = (self.moment(), self.table.lock(debit));
        let Some((share, totals)) = shelf.find(debit) else { return false };
        share.tidy(at, totals);
        if spent > debit.cost {
            return share.charge_more(spent - debit.cost, totals);
        }
        share.forget_refusal();
        let (receipt, _, _) = receipt_words(receipt);
        share.take_back(receipt, debit.cost - spent, at, totals)
    }

    /// Gives back what was charged for somebody who is not there any more.
    pub(super) fn undo(&self, debit: &Debit, outcome: &Outcome) {
        if outcome.is_admitted() {
            outcome.receipts().for_each(|receipt| self.settle(debit, &receipt, 0));
        }
    }

    pub(super) fn forget(&self, debit: &Debit) {
        if let Some((share, totals)) = self.table.lock(debit).find(debit) {
            share.reset(totals);
        }
    }

    /// Gives back what is unspent of some shares; of how many parts.
    pub(super) fn give_back_shelf(&self, shelf: usize) -> usize {
        let at = self.moment();
        let unspent: Vec<_> = {
            let mut shelf = self.table.shelf(shelf);
            let (shares, totals) = shelf.all();
            let parts = shares.iter_mut().flat_map(|share| {
                share.tidy(at, totals);
                let debit = share.debit.clone();
                share.hand_over().map(move |part| (debit.clone(), part))
            });
            parts.collect()
        };
        unspent.iter().for_each(|(debit, part)| self.give_back(debit, part));
        self.table.shelf(shelf).tell();
        unspent.len()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for at in 0..self.table.len() {
            self.give_back_shelf(at);
        }
    }
}
