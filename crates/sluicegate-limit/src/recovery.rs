//! When a state equals a fresh one, and may be forgotten.

use core::time::Duration;

use super::algorithm::token_bucket::TokenBucket;
use super::definition::Limit;
use super::exact::bounded;
use super::state::State;
use super::words::time_left;

impl Limit {
    /// Until `state` equals a fresh one and may be forgotten, by the numbers that have written it; `None`:
    /// not before it is given back.
    pub fn fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        self.fresh_in_micros(state, now).map(Duration::from_micros)
    }

    #[doc(hidden)]
    pub fn fresh_in_micros(&self, state: &State, now: u64) -> Option<u64> {
        let now = bounded(now);
        let shape = self.accounts_fresh_in(state, now)?;
        Some(self.or_kept_out(shape, state, now))
    }

    /// Until the account of this limit's numbers has recovered.
    pub(super) fn own_fresh_in(&self, state: &State, now: u64) -> Option<Duration> {
        let shape = self.algorithm.fresh_in(state, now)?;
        Some(Duration::from_micros(self.or_kept_out(shape, state, now)))
    }

    /// The longer of that time and what a gap or a ban still lasts.
    fn or_kept_out(&self, shape: u64, state: &State, now: u64) -> u64 {
        let gap =
            if self.has_gap() { TokenBucket::gap(self.gap).fresh_in(state.gap, now) } else { 0 };
        let banned = time_left(state.ban, now).max(self.struck_for(state, now));
        shape.max(gap).max(banned)
    }
}
