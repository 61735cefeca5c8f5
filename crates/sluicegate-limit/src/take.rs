//! Deciding by one limit, for a key whose state the caller holds.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::algorithm::Algorithm;
use super::algorithm::sliding_log::MOST_ENTRIES;
use super::decide::{Attempt, decide, decide_each, preview};
use super::decision::Decision;
use super::definition::Limit;
use super::keys::Keys;
use super::state::{MOST_ACCOUNTS, OtherAccounts, State};
use super::words::NO_PARAMETERS;
use crate::inline_vec::InlineVec;

impl Limit {
    /// The state of a key that has spent nothing.
    ///
    /// For a sliding log this makes room for all the entries that it can ever hold, up to 65,536 of
    /// them (1 MiB), so that [`take`](Self::take) never allocates.
    pub fn fresh(&self) -> State {
        let mut state = State::default();
        if self.carried && self.algorithm.parameters() != NO_PARAMETERS {
            // Whatever other numbers come, there is room for their accounts.
            let accounts = Vec::with_capacity(MOST_ACCOUNTS);
            state.others = Some(Box::new(OtherAccounts { accounts, ..OtherAccounts::default() }));
        }
        if let Algorithm::SlidingLog(sieve) = self.algorithm {
            let log = state.log.get_or_insert_default();
            log.reserve_exact(sieve.entries().min(MOST_ENTRIES as u64) as usize);
        }
        state
    }

    /// Spends `cost` at `now`, in microseconds since the Unix epoch, if the limit admits it.
    ///
    /// This is the bare arithmetic, for a key whose state you hold; a store holds
    /// the states of many. The same step decides in both.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per_second(3);
    /// let mut state = limit.fresh();
    /// let now = 1_700_000_000_000_000;
    ///
    /// assert!(limit.take(&mut state, now, 3).is_admitted());
    /// let refused = limit.take(&mut state, now, 1);
    /// assert_eq!(refused.retry_after().unwrap().as_micros(), 333_334);
    /// ```
    pub fn take(&self, state: &mut State, now: u64, cost: u64) -> Decision {
        self.decide_alone(&mut [Attempt { limit: self, state, cost }], now, None)
    }

    /// Like [`take`](Self::take), but books a place ahead if one is free within `patience`. The decision then says
    /// how long to [`wait`](Decision::wait), which is never longer than the patience. The
    /// [`queue`](Self::queue) of a leaky bucket bounds how many requests wait, however patient they are.
    pub fn take_within(
        &self,
        state: &mut State,
        now: u64,
        cost: u64,
        patience: Duration,
    ) -> Decision {
        self.decide_alone(&mut [Attempt { limit: self, state, cost }], now, Some(patience))
    }

    /// What [`take`](Self::take) would answer, without spending.
    pub fn peek(&self, state: &State, now: u64, cost: u64) -> Decision {
        let state = &mut state.clone();
        let attempts = &mut [Attempt { limit: self, state, cost }];
        preview(attempts, now, None, Keys::One).decision([(self, cost)])
    }

    fn decide_alone(
        &self,
        attempts: &mut [Attempt<'_>],
        now: u64,
        patience: Option<Duration>,
    ) -> Decision {
        if self.is_plain() {
            let outcome = decide(attempts, now, patience, Keys::One);
            return outcome.decision(attempts.iter().map(|attempt| (attempt.limit, attempt.cost)));
        }
        let mut statuses = InlineVec::new();
        let verdict = decide_each(attempts, now, patience, Keys::One, |attempt, fact| {
            statuses.push(fact.status(attempt.limit, attempt.cost));
        });
        Decision::new(verdict, statuses)
    }
}
