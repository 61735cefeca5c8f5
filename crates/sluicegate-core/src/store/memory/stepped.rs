use crate::limit::{Limit, LimitInternals, Step, TokenBucket, Words};

/// What is spent from without its lock: a [plain](Limit::is_plain) limit, or a part of a bucket.
pub(super) trait Stepped {
    /// The earliest moment at which the words can have been written.
    fn since(&self, words: Words) -> u64;

    /// Spends `cost`, if that may come in at once. Returns also in how many microseconds a row of the new words is
    /// free.
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>);
}

impl Stepped for Limit {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        LimitInternals::since(self, words)
    }

    #[inline]
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        LimitInternals::step(self, words, now, cost)
    }
}

impl Stepped for TokenBucket {
    #[inline]
    fn since(&self, words: Words) -> u64 {
        self.since(words)
    }

    #[inline(always)]
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        self.step(words, now, cost)
    }
}
