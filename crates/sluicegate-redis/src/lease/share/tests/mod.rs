//! Several processes with different clocks. The server is a limit in memory.

mod below;
mod by_hand;
mod fleet;

use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters, StateFields, state};
use sluicegate_core::adapter::{Charge, Receipt, State};
use sluicegate_core::key::KeyBuf;

use super::*;
use crate::script::lease::{Lease, LeaseRequest};

/// A server with one row.
struct Server {
    limit: Limit,
    state: State,
    /// The debt after the last lease.
    leased: [u64; 2],
}

impl Server {
    fn new(limit: Limit) -> Self {
        Self { limit, state: limit.fresh(), leased: [0; 2] }
    }

    /// Does what the script does.
    fn lease(&mut self, wanted: LeaseRequest, now: u64) -> Lease {
        let least = self.limit.peek(&self.state, now, wanted.least);
        let left = least.remaining().expect("one limit");
        let taken = if left >= wanted.least { left.min(self.most(wanted, left, now)) } else { 0 };
        if taken > 0 {
            assert!(self.limit.take(&mut self.state, now, taken).is_admitted());
            if taken > wanted.waited {
                self.leased = self.words();
            }
        }
        Lease { taken, words: self.words(), now, retry_after: least.retry_after() }
    }

    fn words(&self) -> [u64; 2] {
        StateFields::from(&self.state).words
    }

    /// The additional tokens that fill half of a bucket.
    fn most(&self, wanted: LeaseRequest, left: u64, now: u64) -> u64 {
        let (Algorithm::TokenBucket { unit, .. }, true) =
            (LimitParameters::of(&self.limit).algorithm, wanted.fill > 0)
        else {
            return wanted.most;
        };
        let missing = wanted.fill.saturating_sub(self.debt(self.words(), now)) / unit;
        let most = if missing > wanted.most { missing.min(wanted.largest) } else { wanted.most };
        most.min(wanted.waited + left.saturating_sub(wanted.waited) / 2).max(wanted.waited)
    }

    fn debt(&self, [at, debt]: [u64; 2], now: u64) -> u64 {
        let Algorithm::TokenBucket { drain, tick, .. } = LimitParameters::of(&self.limit).algorithm
        else {
            return 0;
        };
        debt.saturating_sub((now / tick).saturating_sub(at).saturating_mul(drain))
    }

    fn give_back(&mut self, part: &LeasedTokens, now: u64) {
        let (receipt, spent) = (Receipt::from_words(part.words), part.taken - part.unspent);
        self.settle(&receipt, (part.taken, spent), now);
    }

    fn settle(&mut self, receipt: &Receipt, (cost, spent): (u64, u64), now: u64) {
        let (before, debt, kept) =
            (self.words(), self.debt(self.words(), now), self.debt(self.leased, now));
        self.limit.settle(&mut self.state, now, receipt, cost, spent);
        let Algorithm::TokenBucket { tick, .. } = LimitParameters::of(&self.limit).algorithm else {
            return;
        };
        let given = before[1] - self.words()[1];
        if receipt.words() == self.leased {
            self.leased = [now / tick, kept.saturating_sub(given)];
        } else {
            let given = given.min(debt.saturating_sub(kept));
            self.state = state([before[0], before[1] - given]);
        }
    }
}

fn debit(limit: Limit) -> Debit {
    let charge = Charge::of(limit, KeyBuf::of("alice"), 1);
    charge.debits().next().expect("one limit").clone()
}

fn share(limit: Limit, batch: &RangeInclusive<u64>) -> Share {
    let validity = Validity::of(&limit).expect("can be leased");
    Share::new(&debit(limit), validity, batch)
}

/// By a clock that is right.
fn at(now: u64) -> Moment {
    Moment { now, slack: 0, is_manual: true }
}
