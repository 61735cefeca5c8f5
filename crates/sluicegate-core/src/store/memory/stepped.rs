use crate::limit::{Limit, PlainPart, StepResult, TokenBucket, Words};

/// What is spent from without its lock: a [plain](Limit::is_plain) limit, or a part of a bucket.
pub(super) trait Stepped {
    /// The earliest moment at which the words can have been written.
    fn since(&self, words: Words) -> u64;

    /// Spends `cost`, if that may come in at once.
    fn step(&self, words: Words, now: u64, cost: u64) -> StepResult;
}

impl Stepped for Limit {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        self.since(words)
    }

    #[inline]
    fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
        self.step(words, now, cost)
    }
}

impl Stepped for TokenBucket {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        self.since(words)
    }

    #[inline(always)]
    fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
        self.step(words, now, cost)
    }
}

impl Stepped for PlainPart {
    #[inline]
    fn since(&self, [last, _]: Words) -> u64 {
        last
    }

    #[inline(always)]
    fn step(&self, words: Words, now: u64, cost: u64) -> StepResult {
        self.step(words, now, cost)
    }
}
