use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sluicegate_core::adapter::remote::receipt_words;
use sluicegate_core::adapter::{Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::store::Store;

use super::table::Table;
use super::validity::{LeasedTokens, Moment, Validity};
use crate::exchange::shared::Shared;
use crate::store::Redis;

/// How many microseconds the machine's clock may lag behind the time that has passed.
const SLACK: u64 = 20;

/// What all clones of a store share.
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

    /// The time. Read it before taking a lock, so that no thread waits for the clock.
    #[inline]
    pub(super) fn moment(&self) -> Moment {
        let is_manual = self.clock.as_manual().is_some();
        Moment { now: self.clock.now(), slack: if is_manual { 0 } else { SLACK }, is_manual }
    }

    pub(super) fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if spent == debit.cost || !self.settle_here(debit, receipt, spent) {
            self.redis.settle(debit, receipt, spent);
        }
    }

    fn settle_here(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        if Validity::of(&debit.limit).is_none() {
            return false;
        }
        let (at, mut shard) = (self.moment(), self.table.lock(debit));
        let Some((share, totals)) = shard.find(debit) else { return false };
        share.expire(at, totals);
        if spent > debit.cost {
            return share.charge_more(spent - debit.cost, totals);
        }
        share.forget_refusal();
        let (receipt, _, _) = receipt_words(receipt);
        share.take_back(receipt, debit.cost - spent, at, totals)
    }

    /// Gives back the charge of a request that has gone.
    pub(super) fn undo(&self, debit: &Debit, outcome: &Outcome) {
        if outcome.is_admitted() {
            outcome.receipts().for_each(|receipt| self.settle(debit, &receipt, 0));
        }
    }

    pub(super) fn forget(&self, debit: &Debit) {
        self.table.lock(debit).forget(debit);
    }

    /// Gives unspent tokens back to the server.
    pub(super) fn give_back(&self, debit: &Debit, tokens: &LeasedTokens) {
        if tokens.unspent > 0 {
            self.settle_unspent(debit, tokens);
            self.table.lock(debit).totals.given_back += tokens.unspent;
        }
    }

    /// Like [`give_back`](Self::give_back), without counting.
    pub(super) fn settle_unspent(&self, debit: &Debit, tokens: &LeasedTokens) {
        let debit = with_cost(debit, tokens.taken);
        self.redis.settle(&debit, &tokens.receipt(), tokens.taken - tokens.unspent);
    }

    /// Gives back the unspent tokens of a shard, and returns of how many leases.
    pub(super) fn give_back_shard(&self, shard: usize) -> usize {
        let at = self.moment();
        let unspent: Vec<_> = {
            let mut shard = self.table.shard(shard);
            let (shares, totals) = shard.all();
            let unspent = shares.iter_mut().flat_map(|share| {
                share.expire(at, totals);
                let debit = share.debit.clone();
                share.hand_over().map(move |tokens| (debit.clone(), tokens))
            });
            unspent.collect()
        };
        unspent.iter().for_each(|(debit, tokens)| self.give_back(debit, tokens));
        self.table.shard(shard).report();
        unspent.len()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for at in 0..self.table.len() {
            self.give_back_shard(at);
        }
    }
}

pub(super) fn with_cost(debit: &Debit, cost: u64) -> Debit {
    let mut debit = debit.clone();
    debit.cost = cost;
    debit
}
