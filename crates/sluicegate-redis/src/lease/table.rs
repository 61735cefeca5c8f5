//! Where shares are kept: a bounded number of them, a few under each lock.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use sluicegate_core::adapter::Debit;

use super::counts::Totals;
use super::share::Share;
use super::validity::{Moment, Validity};
use crate::observe::report;

/// Shares under one lock: few enough to be looked through.
const TOGETHER: usize = 8;

/// All shares of a store.
pub(super) struct Table {
    /// Secrets that no client knows, so that none can choose where its keys land.
    seed: (u64, SharedSeed),
    shelves: Box<[Mutex<Shelf>]>,
}

/// Shares under one lock, and what became of them and those before them.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) totals: Totals,
    /// What has been measured of them.
    told: Totals,
    shares: Vec<Share>,
}

impl Table {
    /// Room for `capacity` shares or somewhat more.
    pub(super) fn new(capacity: usize) -> Self {
        let random = |which: u64| RandomState::new().hash_one(which);
        let shelves = capacity.div_ceil(TOGETHER).max(1).next_power_of_two();
        Self {
            seed: (random(0), SharedSeed::from_u64(random(1))),
            shelves: (0..shelves).map(|_| Mutex::default()).collect(),
        }
    }

    /// Where the share of this limit and key stands, if it does.
    pub(super) fn lock(&self, debit: &Debit) -> MutexGuard<'_, Shelf> {
        let mut hasher = FoldHasher::with_seed(self.seed.0 ^ debit.limit.id(), &self.seed.1);
        hasher.write_u64(debit.key.lengths() as u64);
        debit.key.words().iter().for_each(|word| hasher.write_u64(*word));
        let shelf = hasher.finish() as usize & (self.shelves.len() - 1);
        locked(&self.shelves[shelf])
    }

    /// The number of shelves.
    pub(super) fn len(&self) -> usize {
        self.shelves.len()
    }

    /// One of the shelves.
    pub(super) fn shelf(&self, at: usize) -> MutexGuard<'_, Shelf> {
        locked(&self.shelves[at])
    }

    /// All shelves, one after another.
    pub(super) fn shelves(&self) -> impl Iterator<Item = MutexGuard<'_, Shelf>> {
        self.shelves.iter().map(locked)
    }
}

fn locked(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelf {
    /// The share of this limit and key, and what to count by, if there is one.
    pub(super) fn find(&mut self, debit: &Debit) -> Option<(&mut Share, &mut Totals)> {
        let share = self.shares.iter_mut().find(|share| is_of(share, debit))?;
        Some((share, &mut self.totals))
    }

    /// The same; one is made, if there is room for it.
    pub(super) fn find_or_make(
        &mut self,
        debit: &Debit,
        validity: Validity,
        batch: &RangeInclusive<u64>,
        at: Moment,
    ) -> Option<(&mut Share, &mut Totals)> {
        let found = self.shares.iter().position(|share| is_of(share, debit));
        let place = match found {
            Some(place) => place,
            None => self.room(at, || Share::new(debit, validity, batch))?,
        };
        let share = self.shares.get_mut(place)?;
        if share.validity != validity {
            // The same limit with another burst or count: what a token weighs has not changed.
            share.debit.limit = debit.limit;
            share.validity = validity;
            share.forget_refusal();
        }
        Some((share, &mut self.totals))
    }

    /// Puts a share in a place of its own, or of the one that is idle for the longest time.
    fn room(&mut self, at: Moment, make: impl FnOnce() -> Share) -> Option<usize> {
        if self.shares.len() < TOGETHER {
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

    /// Measures what has become of the tokens since the last time.
    pub(super) fn report(&mut self) {
        report::leases(self.totals.since(&mut self.told));
    }

    /// The shares, and what to count by.
    pub(super) fn all(&mut self) -> (&mut [Share], &mut Totals) {
        (&mut self.shares, &mut self.totals)
    }
}

fn is_of(share: &Share, debit: &Debit) -> bool {
    share.debit.limit.id() == debit.limit.id() && share.debit.key == debit.key
}
