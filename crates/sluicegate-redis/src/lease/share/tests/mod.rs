//! Several processes with different clocks. The server is a limit in memory.

mod above;
mod below;
mod by_hand;
mod fleet;

use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{
    self, Algorithm, Carried, LimitParameters, StateFields, state,
};
use sluicegate_core::adapter::{Charge, Receipt, State};
use sluicegate_core::key::KeyBuf;

use super::*;
use crate::script::lease::{Lease, LeaseRequest};

/// A server with one row.
struct Server {
    /// The limit of the process that calls. Its numbers differ between processes if it is carried over.
    limit: Limit,
    state: State,
    /// The debt after the last lease.
    leased: [u64; 2],
    /// The numbers of that lease, and when what was leased by any numbers has drained.
    of: ([u64; 4], u64),
}

impl Server {
    fn new(limit: Limit) -> Self {
        Self { limit, state: limit.fresh(), leased: [0; 2], of: ([0; 4], 0) }
    }

    /// Does what the script does.
    fn lease(&mut self, wanted: LeaseRequest, now: u64) -> Lease {
        let least = self.limit.peek(&self.state, now, wanted.least);
        let left = least.remaining().expect("one limit");
        let taken = if left >= wanted.least { left.min(self.most(wanted, left, now)) } else { 0 };
        let mut carried = Carried::default();
        if taken > 0 {
            let admitted = self.limit.take(&mut self.state, now, taken);
            assert!(admitted.is_admitted());
            carried = remote::carried(&admitted.statuses().next().expect("one limit").receipt);
            if taken > wanted.waited {
                self.leased = self.words(now);
                let drained = now + self.fresh_in(now);
                self.of = (LimitParameters::of(&self.limit).written(), self.of.1.max(drained));
            }
        }
        Lease {
            taken,
            words: self.words(now),
            now,
            retry_after: least.retry_after(),
            carried,
            banned: false,
        }
    }

    /// The words of this limit's account.
    fn words(&self, now: u64) -> [u64; 2] {
        let mut state = self.state.clone();
        if self.limit.is_carried() {
            self.limit.take(&mut state, now, 0);
        }
        StateFields::from(&state).words
    }

    /// How long until the account of this limit has recovered.
    fn fresh_in(&self, now: u64) -> u64 {
        let state = state(self.words(now));
        self.limit.fresh_in(&state, now).map_or(0, |time| time.as_micros() as u64)
    }

    /// The additional tokens that fill half of a bucket.
    fn most(&self, wanted: LeaseRequest, left: u64, now: u64) -> u64 {
        let (Algorithm::TokenBucket { unit, .. }, true) =
            (LimitParameters::of(&self.limit).algorithm, wanted.fill > 0)
        else {
            return wanted.most;
        };
        let missing = wanted.fill.saturating_sub(self.debt(self.words(now), now)) / unit;
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
        let (receipt, spent) = (part.receipt(), part.taken - part.unspent);
        self.settle(&receipt, (part.taken, spent), now);
    }

    /// Whether leased tokens keep a charge to a carried bucket from being given back.
    fn is_kept(&self, receipt: [u64; 2], back: u64, now: u64) -> bool {
        let numbers = LimitParameters::of(&self.limit);
        let Algorithm::TokenBucket { unit, .. } = numbers.algorithm else { return false };
        let (numbers, (of, until)) = (numbers.written(), self.of);
        if now >= until {
            return false;
        }
        if StateFields::from(&self.state).accounts.len() != 1 || numbers != of {
            return true;
        }
        let (debt, kept) = (self.debt(self.words(now), now), self.debt(self.leased, now));
        let own = self.debt(receipt, now).min(back * unit).min(debt);
        receipt != self.leased && own > debt.saturating_sub(kept)
    }

    fn settle(&mut self, receipt: &Receipt, (cost, spent): (u64, u64), now: u64) {
        let (before, kept) = (self.words(now), self.debt(self.leased, now));
        let debt = self.debt(before, now);
        if self.limit.is_carried() {
            if !self.is_kept(receipt.words(), cost - spent, now) {
                self.limit.settle(&mut self.state, now, receipt, cost, spent);
                if receipt.words() == self.leased {
                    let given = debt - self.debt(self.words(now), now);
                    let tick = self.words(now)[0].max(before[0]);
                    self.leased = [tick, self.debt(self.leased, now).saturating_sub(given)];
                }
            }
            return;
        }
        self.limit.settle(&mut self.state, now, receipt, cost, spent);
        let Algorithm::TokenBucket { tick, .. } = LimitParameters::of(&self.limit).algorithm else {
            return;
        };
        let given = before[1] - self.words(now)[1];
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
