//! The one step of a [plain](Limit::is_plain) limit, whose state is two words.
//!
//! Nothing here reads a clock, fails or allocates; `now` is passed in, in microseconds.

use super::algorithm::Algorithm;
use super::definition::Limit;
use super::earliest::{Earliest, StepResult};
use super::outcome::PlainOutcome;
use super::state::State;
use super::words::Words;

impl Limit {
    /// The earliest moment at which a state of two words may have been written.
    #[doc(hidden)]
    pub fn since(&self, words: Words) -> u64 {
        self.algorithm.since(words)
    }

    /// [`step`](Self::step) from a state whose only account is that of these numbers, and that holds nothing else:
    /// the outcome, and in how many microseconds the state then equals a fresh one if something was spent. `None`
    /// where there is more to look at, or the state is of a later time.
    ///
    /// Neither a charge nor a refusal then has anything to do but what it does to two words.
    #[inline]
    #[doc(hidden)]
    pub fn step_account(
        &self,
        state: &mut State,
        now: u64,
        cost: u64,
    ) -> Option<(PlainOutcome, Option<Option<u64>>)> {
        let before = state.words;
        let is_in_order = state.written.since <= now && self.algorithm.since(before) <= now;
        if !is_in_order || !state.is_account_of(self.algorithm.parameters()) {
            return None;
        }
        let result = self.step(before, now, cost);
        let mut spent = None;
        if let StepResult::Admit { words, fresh_in } = result {
            state.words = words;
            spent = Some(fresh_in);
        }
        Some((PlainOutcome::new(result, before, now).of_account(), spent))
    }

    /// Spends `cost` by a limit that is [plain](Self::is_plain), or by its [account](Self::is_plain_account), if that may come in at once. The words must not be
    /// of a later time.
    #[doc(hidden)]
    pub fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
        let admitted = match &self.algorithm {
            Algorithm::TokenBucket(bucket) => return bucket.step(words, now, cost),
            Algorithm::FixedWindow(window) => window.admit_now(words, now, cost),
            Algorithm::SlidingWindow(window) => window.admit_now(words, now, cost),
            _ => None,
        };
        if let Some(admitted) = admitted {
            return admitted;
        }
        let mut state = State::of(words);
        match self.algorithm.earliest(&state, now, cost, 0) {
            Earliest::At(0) => {
                self.algorithm.spend(&mut state, now, cost, 0);
                let fresh_in = self.algorithm.fresh_in(&state, now);
                StepResult::Admit { words: state.words, fresh_in }
            }
            earliest => StepResult::Refuse(earliest),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What the step does if it is taken the long way, by the three questions of every algorithm.
    fn in_full(limit: &Limit, words: Words, now: u64, cost: u64) -> Option<(Words, Option<u64>)> {
        let mut state = State::of(words);
        if limit.algorithm.earliest(&state, now, cost, 0) != Earliest::At(0) {
            return None;
        }
        limit.algorithm.spend(&mut state, now, cost, 0);
        Some((state.words, limit.algorithm.fresh_in(&state, now)))
    }

    #[test]
    fn the_quick_step_of_a_window_is_the_long_one() {
        let period = Duration::from_micros(100);
        let limits = [
            Limit::fixed_window(5, period),
            Limit::fixed_window(5, period).from_first(),
            Limit::sliding_window(5, period),
            Limit::sliding_window(4_000_000_000, Duration::from_secs(86_400)),
        ];
        for limit in limits {
            let (mut words, mut now, mut seed) = ([0; 2], 1_000_000, 1_u64);
            for _ in 0..20_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += [0, 1, 7, 40, 130, 350][(seed >> 40) as usize % 6];
                let cost = [0, 1, 1, 2, 5, 6, u64::MAX][(seed >> 50) as usize % 7];
                let expected = in_full(&limit, words, now, cost);
                let step = match limit.step(words, now, cost) {
                    StepResult::Admit { words, fresh_in } => Some((words, fresh_in)),
                    StepResult::Refuse(_) => None,
                };
                assert_eq!(step, expected, "{limit}: {words:?} at {now}, cost {cost}");
                if let Some((after, _)) = step {
                    words = after;
                }
            }
        }
    }
}
