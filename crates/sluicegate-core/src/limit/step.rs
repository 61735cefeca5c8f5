//! The one step of a [plain](Limit::is_plain) limit, whose state is two words.
//!
//! Nothing here reads a clock, fails or allocates; `now` is passed in, in microseconds.

use super::algorithm::Algorithm;
use super::definition::Limit;
use super::earliest::{Earliest, StepResult};
use super::state::State;
use super::words::Words;

impl Limit {
    /// The earliest moment at which a state of two words can have been written.
    pub(crate) fn since(&self, words: Words) -> u64 {
        self.algorithm.since(words)
    }

    /// Spends `cost` by a [plain](Self::is_plain) limit, if that may come in at once. The words must not be
    /// of a later time.
    pub(crate) fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
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
