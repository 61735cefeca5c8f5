//! What a store asks about the state of a limit: how large it is, and what can be kept of it in a row.

use super::algorithm::Algorithm;
use super::algorithm::sliding_log::Log;
use super::algorithm::token_bucket::TokenBucket;
use super::definition::{AlgorithmSpec, Limit};
use super::state::{Receipt, State};
use super::words::Words;

impl Limit {
    /// The bucket of a plain limit of which a microsecond drains one, as of most.
    #[inline]
    #[doc(hidden)]
    pub const fn one_word_bucket(&self) -> Option<&TokenBucket> {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) if self.plain && bucket.drains_one_per_microsecond() => {
                Some(bucket)
            }
            _ => None,
        }
    }

    /// The bucket of a plain limit.
    #[inline]
    #[doc(hidden)]
    pub const fn plain_bucket(&self) -> Option<&TokenBucket> {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) if self.plain => Some(bucket),
            _ => None,
        }
    }

    /// Whether the state is that of a limit [with a one-word row](Self::one_word_bucket): a shadow's is too, so that it is the
    /// same when it becomes one that refuses.
    #[inline]
    #[doc(hidden)]
    pub const fn fits_one_word(&self) -> bool {
        let queues = matches!(self.spec, AlgorithmSpec::LeakyBucket { .. });
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) => {
                bucket.drains_one_per_microsecond() && !self.has_extra_state() && !queues
            }
            _ => false,
        }
    }

    /// The state of a limit that [fits one word](Self::fits_one_word) as `receipt` wrote it, if that is what is left of it:
    /// giving back asks whether anybody was charged since.
    #[doc(hidden)]
    pub fn as_written(&self, words: Words, receipt: &Receipt) -> Words {
        let is_same =
            self.fits_one_word() && words[0] + words[1] == receipt.words[0] + receipt.words[1];
        if is_same { receipt.words } else { words }
    }

    /// Microseconds until a state of two words equals a fresh one.
    #[inline]
    #[doc(hidden)]
    pub fn words_fresh_in(&self, words: Words, now: u64) -> Option<u64> {
        self.algorithm.fresh_in(&State::of(words), now)
    }

    /// The most entries that a log needs room for, without places booked ahead.
    #[doc(hidden)]
    pub fn most_entries(&self) -> usize {
        match self.algorithm {
            Algorithm::SlidingLog(sieve) => usize::try_from(sieve.entries()).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// The log of a state, where this limit keeps one.
    #[doc(hidden)]
    pub fn log_of<'s>(&self, state: &'s mut State) -> Option<&'s mut Log> {
        match self.spec {
            AlgorithmSpec::SlidingLog { .. } => Some(state.log.get_or_insert_default()),
            _ => None,
        }
    }

    /// Drops what a log holds in vain, and nothing else.
    #[doc(hidden)]
    pub fn tidy_log(&self, state: &mut State, now: u64) {
        if self.most_entries() > 0 {
            self.algorithm.tidy(state, now);
        }
    }
}
