//! Writing to a state: a charge, a refusal that counts, and what the clock has changed since.

use super::algorithm::token_bucket::TokenBucket;
use super::definition::Limit;
use super::state::{Receipt, State};
use super::words::time_left;

impl Limit {
    /// Goes on by the account of the limit's own numbers, follows a clock that stepped back, and drops what is
    /// remembered in vain.
    #[inline]
    pub(crate) fn tidy(&self, state: &mut State, now: u64) {
        if self.carried {
            self.meet(state, now);
        }
        self.follow_all(state, now);
    }

    #[inline]
    pub(super) fn follow_all(&self, state: &mut State, now: u64) {
        self.algorithm.tidy(state, now);
        if self.carried {
            self.follow_others(state, now);
        }
        if self.has_gap() {
            TokenBucket::gap(self.gap).follow(&mut state.gap, now);
        }
        if self.ban > 0 || self.carried {
            state.ban[0] = state.ban[0].min(now);
            state.strikes[0] = state.strikes[0].min(now);
        }
    }

    /// Whether the state may hold a gap: this limit's, or one that it had before.
    pub(super) fn has_gap(&self) -> bool {
        self.gap > 0 || self.carried
    }

    /// [`tidy`](Self::tidy) of a plain limit.
    #[inline]
    pub(super) fn follow(&self, state: &mut State, now: u64) {
        self.algorithm.tidy(state, now);
    }

    #[inline]
    pub(super) fn spend(&self, state: &mut State, now: u64, cost: u64, wait: u64) -> Receipt {
        let words = self.algorithm.spend(state, now, cost, wait);
        if self.gap > 0 {
            TokenBucket::gap(self.gap).spend(&mut state.gap, now, 1, wait);
        }
        let banned = time_left(state.ban, now) > 0 || self.struck_for(state, now) > 0;
        let (since, by_all) = self.charge_others(state, now, cost);
        let gap = state.gap;
        Receipt {
            words,
            gap,
            via: 0,
            banned,
            at: now.min(since),
            since,
            by_all,
            void: false,
            together: false,
            part: 0,
        }
    }

    /// Writes down that this limit refused, where that is recorded.
    pub(super) fn refuse(&self, state: &mut State, now: u64, cost: u64) {
        if self.never_fits(cost) {
            // No attempt to go faster: no slower one would be admitted either.
            return;
        }
        if self.ban > 0 {
            self.strike(state, now, cost);
        }
        if self.count_refused {
            self.algorithm.record_refused(state, now, cost);
        }
    }
}
