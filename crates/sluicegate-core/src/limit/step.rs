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
        if let Algorithm::TokenBucket(bucket) = &self.algorithm {
            return bucket.step(words, now, cost);
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
