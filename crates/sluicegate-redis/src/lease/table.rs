//! The table of shares: a bounded number, a few under each lock.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::LimitParameters;
use sluicegate_core::adapter::{Debit, KeyHash};

use super::counts::LeaseCounts;
use super::share::Share;
use super::validity::{LeasedTokens, Moment, Validity};
use crate::observe::report;

/// Shares in one shard, which are searched one by one.
const SHARES: usize = 8;

/// All shares of a store.
pub(super) struct Table {
    hash: KeyHash,
    shards: Box<[Mutex<Shard>]>,
}

/// Shares under one lock, and the counts of them and of those before them.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) totals: LeaseCounts,
    /// The counts that were last reported.
    reported: LeaseCounts,
    shares: Vec<Share>,
    /// How often rows were reset.
    resets: u64,
}

impl Table {
    /// Room for `capacity` shares or somewhat more.
    pub(super) fn new(capacity: usize) -> Self {
        let shards = capacity.div_ceil(SHARES).max(1).next_power_of_two();
        Self { hash: KeyHash::new(), shards: (0..shards).map(|_| Mutex::default()).collect() }
    }

    /// Locks the shard of this limit and key.
    pub(super) fn lock(&self, debit: &Debit) -> MutexGuard<'_, Shard> {
        let hash = self.hash.of(debit.limit.id(), &debit.key);
        let shard = hash as usize & (self.shards.len() - 1);
        locked(&self.shards[shard])
    }

    /// The number of shards.
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    /// One of the shards.
    pub(super) fn shard(&self, at: usize) -> MutexGuard<'_, Shard> {
        locked(&self.shards[at])
    }

    /// All shards, one after another.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(locked)
    }
}

fn locked(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// The share of this limit and key, if there is one, and the counters.
    pub(super) fn find(&mut self, debit: &Debit) -> Option<(&mut Share, &mut LeaseCounts)> {
        let share = self.shares.iter_mut().find(|share| is_of(share, debit))?;
        Some((share, &mut self.totals))
    }

    /// Like [`find`](Self::find), but makes a share if there is room.
    pub(super) fn find_or_make(
        &mut self,
        debit: &Debit,
        validity: Validity,
        batch: &RangeInclusive<u64>,
        at: Moment,
    ) -> Option<(&mut Share, &mut LeaseCounts)> {
        let found = self.shares.iter().position(|share| is_of(share, debit));
        let place = match found {
            Some(place) => place,
            None => self.room(at, || Share::new(debit, validity, batch))?,
        };
        let share = self.shares.get_mut(place)?;
        if share.validity != validity {
            // The burst or the count has changed, but not the weight of a token.
            share.debit.limit = debit.limit;
            share.validity = validity;
            share.forget_refusal();
        }
        Some((share, &mut self.totals))
    }

    /// Takes the unspent tokens that other numbers of a limit have leased, before the first lease by these numbers. Those
    /// of a lease under way are given back when it arrives.
    pub(super) fn hand_over_others(
        &mut self,
        debit: &Debit,
        at: Moment,
    ) -> Vec<(Debit, LeasedTokens)> {
        if !debit.limit.is_carried() || self.shares.iter().any(|share| is_of(share, debit)) {
            return Vec::new();
        }
        let totals = &mut self.totals;
        let others = self.shares.iter_mut().filter(|share| is_of_row(share, debit));
        let unspent = others.flat_map(|share| {
            share.expire(at, totals);
            let debit = share.debit.clone();
            share.leave().map(move |tokens| (debit.clone(), tokens))
        });
        unspent.collect()
    }

    /// Forgets the last refusals of a row, because other numbers of the limit have given something back.
    pub(super) fn forget_refusals(&mut self, debit: &Debit) {
        let shares = self.shares.iter_mut().filter(|share| is_of_row(share, debit));
        shares.for_each(Share::forget_refusal);
    }

    /// Makes room for a share, if necessary by replacing the one that is idle for longest.
    fn room(&mut self, at: Moment, make: impl FnOnce() -> Share) -> Option<usize> {
        if self.shares.len() < SHARES {
            self.shares.push(make());
            return Some(self.shares.len() - 1);
        }
        let totals = &mut self.totals;
        let idle = self.shares.iter_mut().enumerate().filter_map(|(place, share)| {
            let seen = share.seen();
            share.expire(at, totals);
            share.is_idle().then_some((seen, place))
        });
        let (_, place) = idle.min()?;
        self.shares[place] = make();
        Some(place)
    }

    /// Reports the counts since the last report as metrics.
    pub(super) fn report(&mut self) {
        report::leases(self.totals.since(&mut self.reported));
    }

    /// Discards the tokens of a row, whatever the numbers of the limit that has leased them.
    pub(super) fn forget(&mut self, debit: &Debit) {
        self.resets += 1;
        let totals = &mut self.totals;
        let shares = self.shares.iter_mut().filter(|share| is_of_row(share, debit));
        shares.for_each(|share| share.reset(totals));
    }

    /// How often rows were reset. A lease that was late before the last time is void. It is counted for all shares
    /// together, because that of the row may be replaced before the lease arrives.
    pub(super) const fn resets(&self) -> u64 {
        self.resets
    }

    /// All shares, and the counters.
    pub(super) fn all(&mut self) -> (&mut [Share], &mut LeaseCounts) {
        (&mut self.shares, &mut self.totals)
    }
}

/// Numbers of a limit that is carried over have a share each, like their account in the row.
fn is_of(share: &Share, debit: &Debit) -> bool {
    let is_account = || account(&share.debit.limit) == account(&debit.limit);
    is_of_row(share, debit) && (!debit.limit.is_carried() || is_account())
}

fn account(limit: &Limit) -> [u64; 4] {
    LimitParameters::of(limit).written()
}

fn is_of_row(share: &Share, debit: &Debit) -> bool {
    share.debit.limit.id() == debit.limit.id() && share.debit.key == debit.key
}
