//! When a limit lets a request in, how long the request then waits in the limit's own queue, and which places
//! ahead can be booked.
//!
//! Every algorithm answers one question: when may this cost come in, not before a given moment
//! ([`earliest`](Limit::earliest))? Refusals, `retry_after`, the wait of a queue, bans, gaps and the agreement of
//! several limits on one moment are all made of the answer.
//!
//! A queue is not a list of waiters. A request that may wait books a place ahead in the state itself. Order
//! is the order of arrival at the store, the wait is known at once, and a request that cannot be served in
//! time is refused instead of waiting in vain. Every algorithm books ahead, except concurrency, which
//! cannot know.

use core::time::Duration;

use super::algorithm::Algorithm;
use super::algorithm::token_bucket::TokenBucket;
use super::definition::{AlgorithmSpec, Limit};
use super::earliest::Earliest;
use super::keys::Keys;
use super::state::State;
use super::words::time_left;

impl Limit {
    /// The earliest moment, `from` or more from `now`, at which a request may come in.
    #[inline]
    pub(super) fn earliest(&self, state: &State, now: u64, cost: u64, from: u64) -> Earliest {
        let mut from = from;
        if self.ban > 0 {
            from = from.max(time_left(state.ban, now));
        }
        if self.gap > 0 {
            if let Earliest::At(at) = TokenBucket::gap(self.gap).earliest(state.gap, now, 1, from) {
                from = at;
            }
        }
        self.algorithm.earliest(state, now, cost, from)
    }

    /// How long a request that comes in now waits in the limit's own queue, which may have length 0. `None` if the
    /// limit has no queue of its own.
    #[inline]
    pub(super) fn queued(&self, state: &State, now: u64, cost: u64) -> Option<u64> {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                Some(bucket.leave(state.words, now, cost))
            }
            _ => None,
        }
    }

    /// Whether a request with this patience can never be admitted: it costs more than the limit holds, or it would
    /// have to stay in the limit's own queue for longer even if the queue were empty.
    #[doc(hidden)]
    pub fn never_admits(&self, cost: u64, patience: Option<u64>) -> bool {
        let too_long = patience.is_some_and(|patience| self.shortest_queue(cost) > patience);
        too_long || self.never_fits(cost)
    }

    /// How long a request waits in the limit's own queue if the queue is empty.
    pub(super) fn shortest_queue(&self, cost: u64) -> u64 {
        match (self.spec, self.algorithm) {
            (AlgorithmSpec::LeakyBucket { .. }, Algorithm::TokenBucket(bucket)) => {
                bucket.shortest_leave(cost)
            }
            _ => 0,
        }
    }

    /// Microseconds until the window of a place `wait` ahead begins, if the algorithm has windows.
    pub(super) fn window_begins(&self, state: &State, now: u64, wait: u64) -> Option<u64> {
        match self.algorithm {
            Algorithm::FixedWindow(fixed) => Some(fixed.window_begins(state.words, now, wait)),
            Algorithm::SlidingWindow(sliding) => Some(sliding.window_begins(now, wait)),
            Algorithm::TokenBucket(_)
            | Algorithm::SteppedBucket(_)
            | Algorithm::SlidingLog(_)
            | Algorithm::Concurrency(_) => None,
        }
    }

    pub(super) fn books(&self, state: &State, now: u64, cost: u64, wait: u64, keys: Keys) -> bool {
        let own = self.queued(state, now, cost).unwrap_or(0);
        let on_its_own =
            matches!(self.earliest(state, now, cost, 0), Earliest::At(at) if wait <= own.max(at));
        let another = keys == Keys::Several && !on_its_own;
        self.algorithm.books(state, now, cost, wait, another)
    }

    /// How long until this limit alone would admit `cost`.
    #[inline]
    pub(super) fn retry(&self, state: &State, now: u64, cost: u64) -> Option<Duration> {
        self.earliest(state, now, cost, 0).time()
    }
}
