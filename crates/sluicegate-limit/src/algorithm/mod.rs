//! The arithmetic of each algorithm in a file of its own, and one type for all of them.

pub(crate) mod concurrency;
pub(crate) mod fixed_window;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;
pub(crate) mod stepped_bucket;
pub(crate) mod token_bucket;

use self::concurrency::Concurrency;
use self::fixed_window::FixedWindow;
use self::sliding_log::SlidingLog;
use self::sliding_window::SlidingWindow;
use self::stepped_bucket::SteppedBucket;
use self::token_bucket::TokenBucket;
use crate::exact::{EXACT, Earliest};
use crate::state::{NO_PARAMETERS, Parameters, Receipt, State, Step, Words};

/// The arithmetic of a limit, ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Algorithm {
    TokenBucket(TokenBucket),
    SteppedBucket(SteppedBucket),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    SlidingLog(SlidingLog),
    Concurrency(Concurrency),
}

impl Algorithm {
    /// The numbers that define the meaning of the words, and the capacity. [`NO_PARAMETERS`] if the meaning does not
    /// depend on numbers.
    #[inline]
    pub(super) const fn parameters(&self) -> Parameters {
        match self {
            Self::TokenBucket(bucket) => bucket.parameters(),
            Self::SteppedBucket(stepped) => stepped.parameters(),
            Self::FixedWindow(fixed) => fixed.parameters(),
            Self::SlidingWindow(sliding) => sliding.parameters(),
            Self::SlidingLog(_) | Self::Concurrency(_) => NO_PARAMETERS,
        }
    }

    /// The algorithm of those `parameters`.
    pub(super) const fn with_parameters(&self, parameters: Parameters) -> Self {
        match self {
            Self::TokenBucket(_) => Self::TokenBucket(TokenBucket::with_parameters(parameters)),
            Self::SteppedBucket(_) => {
                Self::SteppedBucket(SteppedBucket::with_parameters(parameters))
            }
            Self::FixedWindow(_) => Self::FixedWindow(FixedWindow::with_parameters(parameters)),
            Self::SlidingWindow(_) => {
                Self::SlidingWindow(SlidingWindow::with_parameters(parameters))
            }
            Self::SlidingLog(_) | Self::Concurrency(_) => *self,
        }
    }

    /// Translates words of other `parameters` into words of this algorithm, with at most its whole capacity spent. Also
    /// tells whether marks keep their meaning.
    pub(super) fn taken_over(
        &self,
        words: Words,
        parameters: Parameters,
        now: u64,
    ) -> (Words, bool) {
        match self {
            Self::TokenBucket(bucket) => (bucket.taken_over(words, parameters, now), false),
            Self::SteppedBucket(stepped) => (stepped.taken_over(words, parameters, now), false),
            Self::FixedWindow(fixed) => fixed.taken_over(words, parameters, now),
            Self::SlidingWindow(sliding) => (sliding.taken_over(words, parameters, now), false),
            Self::SlidingLog(_) | Self::Concurrency(_) => (words, true),
        }
    }

    /// How many tokens are spent, the rest of one rounded up.
    pub(super) fn spent(&self, words: Words, now: u64) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.spent(words, now),
            Self::SteppedBucket(stepped) => stepped.spent(words, now),
            Self::FixedWindow(fixed) => fixed.spent(words, now),
            Self::SlidingWindow(sliding) => sliding.spent(words, now),
            Self::SlidingLog(_) | Self::Concurrency(_) => 0,
        }
    }

    /// Words with `tokens` spent, or the whole capacity if that is less.
    pub(super) fn spent_up_to_all(&self, now: u64, tokens: u64) -> Words {
        match self {
            Self::TokenBucket(bucket) => bucket.spent_up_to_all(now, tokens),
            Self::SteppedBucket(stepped) => stepped.spent_up_to_all(now, tokens),
            Self::FixedWindow(fixed) => fixed.spent_up_to_all(now, tokens),
            Self::SlidingWindow(sliding) => sliding.spent_up_to_all(now, tokens),
            Self::SlidingLog(_) | Self::Concurrency(_) => [0; 2],
        }
    }

    /// Charges what other limits have admitted, up to the capacity. Returns whether all of it was charged.
    pub(super) fn charge_up_to_all(&self, words: &mut Words, now: u64, cost: u64) -> bool {
        match self {
            Self::TokenBucket(bucket) => bucket.charge_up_to_all(words, now, cost),
            Self::SteppedBucket(stepped) => stepped.charge_up_to_all(words, now, cost),
            Self::FixedWindow(fixed) => fixed.charge_up_to_all(words, now, cost),
            Self::SlidingWindow(sliding) => {
                sliding.spend(words, now, cost, 0);
                true
            }
            Self::SlidingLog(_) | Self::Concurrency(_) => true,
        }
    }

    /// Gives back what was charged at `then`, when other limits admitted it.
    pub(super) fn give_charged(
        &self,
        words: &mut Words,
        then: u64,
        now: u64,
        cost: u64,
        back: u64,
    ) {
        match self {
            Self::TokenBucket(bucket) => bucket.give_charged(words, then, now, cost, back),
            Self::SteppedBucket(stepped) => stepped.give_charged(words, then, now, cost, back),
            Self::FixedWindow(fixed) => fixed.give_charged(words, then, now, back),
            Self::SlidingWindow(sliding) => sliding.give_charged(words, then, now, back),
            Self::SlidingLog(_) | Self::Concurrency(_) => {}
        }
    }

    /// The earliest moment, `from` or more microseconds from `now`, at which `cost` may come in.
    #[inline]
    pub(super) fn earliest(&self, state: &State, now: u64, cost: u64, from: u64) -> Earliest {
        match self {
            Self::TokenBucket(bucket) => bucket.earliest(state.words, now, cost, from),
            Self::SteppedBucket(stepped) => stepped.earliest(state.words, now, cost, from),
            Self::FixedWindow(fixed) => fixed.earliest(state.words, now, cost, from),
            Self::SlidingWindow(sliding) => sliding.earliest(state.words, now, cost, from),
            Self::SlidingLog(sieve) => sieve.earliest(state.log.as_deref(), now, cost, from),
            Self::Concurrency(concurrent) => concurrent.earliest(state.words, cost, from),
        }
    }

    /// Whether a place `wait` ahead can be booked, for a request that `another` limit may hold back.
    pub(super) fn books(
        &self,
        state: &State,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        if wait == 0 {
            return true;
        }
        let exact = now + wait < EXACT;
        exact
            && match self {
                Self::TokenBucket(bucket) => bucket.books(state.words, now, cost, wait, another),
                Self::SteppedBucket(stepped) => {
                    stepped.books(state.words, now, cost, wait, another)
                }
                Self::FixedWindow(fixed) => fixed.books(state.words, now, cost, wait, another),
                Self::SlidingWindow(sliding) => {
                    sliding.books(state.words, now, cost, wait, another)
                }
                Self::SlidingLog(log) => log.books(wait, another),
                Self::Concurrency(_) => true,
            }
    }

    /// Spends `cost` from two words if it may come in at once, without a queue of the limit's own. The words must not
    /// be of a later time. Returns also in how many microseconds the new words equal fresh ones; `None`: when it is
    /// given back.
    #[inline]
    pub(super) fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        let admitted = match self {
            Self::TokenBucket(bucket) => return bucket.step(words, now, cost),
            Self::FixedWindow(window) => window.admit_now(words, now, cost),
            Self::SlidingWindow(window) => window.admit_now(words, now, cost),
            Self::SteppedBucket(_) | Self::SlidingLog(_) | Self::Concurrency(_) => None,
        };
        match admitted {
            Some((words, fresh_in)) => (Step::admit(words, now), Some(fresh_in)),
            None => self.step_at_length(words, now, cost),
        }
    }

    /// [`step`](Self::step) by the three questions that every algorithm answers.
    fn step_at_length(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        let mut state = State::of(words);
        match self.earliest(&state, now, cost, 0) {
            Earliest::At(0) => {
                self.spend(&mut state, now, cost, 0);
                (Step::admit(state.words, now), self.fresh_in(&state, now))
            }
            earliest @ (Earliest::At(_) | Earliest::Unknown(_) | Earliest::Never) => {
                (Step::refuse(words, now, earliest), None)
            }
        }
    }

    #[inline]
    pub(super) fn spend(&self, state: &mut State, now: u64, cost: u64, wait: u64) -> Words {
        match self {
            Self::TokenBucket(bucket) => bucket.spend(&mut state.words, now, cost, wait),
            Self::SteppedBucket(stepped) => stepped.spend(&mut state.words, now, cost, wait),
            Self::FixedWindow(fixed) => fixed.spend(&mut state.words, now, cost, wait),
            Self::SlidingWindow(sliding) => sliding.spend(&mut state.words, now, cost, wait),
            Self::SlidingLog(sieve) => {
                return [sieve.spend(state.log.get_or_insert_default(), now, cost, wait), 0];
            }
            Self::Concurrency(_) => Concurrency::spend(&mut state.words, cost),
        }
        state.words
    }

    /// Charges what has been spent already, whether or not it fits.
    pub(super) fn force(&self, state: &mut State, now: u64, cost: u64) {
        match self {
            Self::TokenBucket(bucket) => bucket.force(&mut state.words, now, cost),
            Self::SteppedBucket(stepped) => stepped.force(&mut state.words, now, cost),
            Self::FixedWindow(fixed) => fixed.force(&mut state.words, now, cost),
            Self::SlidingWindow(sliding) => sliding.force(&mut state.words, now, cost),
            Self::SlidingLog(sieve) => {
                sieve.force(state.log.get_or_insert_default(), now, cost);
            }
            // A held place stays one place: a response cannot turn out to have been two.
            Self::Concurrency(_) => {}
        }
    }

    pub(super) fn record_refused(&self, state: &mut State, now: u64, cost: u64) {
        match self {
            Self::SlidingLog(sieve) => sieve.record(state.log.get_or_insert_default(), now, cost),
            Self::SlidingWindow(sliding) => sliding.record(&mut state.words, now, cost),
            // The constructor refuses the option for these.
            Self::TokenBucket(_)
            | Self::SteppedBucket(_)
            | Self::FixedWindow(_)
            | Self::Concurrency(_) => {}
        }
    }

    pub(super) fn give(&self, state: &mut State, receipt: &Receipt, now: u64, back: u64) {
        match self {
            Self::TokenBucket(bucket) => bucket.give(&mut state.words, receipt.words, now, back),
            Self::SteppedBucket(stepped) => {
                stepped.give(&mut state.words, receipt.words, now, back);
            }
            Self::FixedWindow(fixed) => fixed.give(&mut state.words, receipt.words, now, back),
            Self::SlidingWindow(sliding) => {
                sliding.give(&mut state.words, receipt.words, now, back);
            }
            Self::SlidingLog(sieve) => {
                if let Some(log) = &mut state.log {
                    sieve.give(log, receipt.words[0], now, back);
                }
            }
            Self::Concurrency(_) => Concurrency::give(&mut state.words, back),
        }
    }

    /// Whether a charge still counted at `then`.
    pub(super) fn counted(&self, receipt: &Receipt, then: u64) -> bool {
        match self {
            Self::SlidingLog(sieve) => receipt.words[0].saturating_add(sieve.period) > then,
            Self::Concurrency(_) => true,
            Self::TokenBucket(_)
            | Self::SteppedBucket(_)
            | Self::FixedWindow(_)
            | Self::SlidingWindow(_) => self.fresh_in(&State::of(receipt.words), then) > Some(0),
        }
    }

    /// Follows a clock that stepped back, and drops expired entries of a log.
    #[inline]
    pub(super) fn tidy(&self, state: &mut State, now: u64) {
        match self {
            Self::TokenBucket(bucket) => bucket.follow(&mut state.words, now),
            Self::SteppedBucket(stepped) => stepped.follow(&mut state.words, now),
            Self::FixedWindow(fixed) => fixed.follow(&mut state.words, now),
            Self::SlidingWindow(sliding) => sliding.follow(&mut state.words, now),
            Self::SlidingLog(sieve) => {
                if let Some(log) = &mut state.log {
                    sieve.tidy(log, now);
                }
            }
            Self::Concurrency(_) => {}
        }
    }

    /// The earliest moment at which a state of two words may have been written.
    #[inline]
    pub(super) fn since(&self, words: Words) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.since(words),
            Self::SteppedBucket(_) | Self::FixedWindow(_) => words[0],
            Self::SlidingWindow(sliding) => sliding.since(words),
            Self::SlidingLog(_) | Self::Concurrency(_) => 0,
        }
    }

    #[inline]
    pub(super) fn remaining(&self, state: &State, now: u64) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.remaining(state.words, now),
            Self::SteppedBucket(stepped) => stepped.remaining(state.words, now),
            Self::FixedWindow(fixed) => fixed.remaining(state.words, now),
            Self::SlidingWindow(sliding) => sliding.remaining(state.words, now),
            Self::SlidingLog(sieve) => sieve.remaining(state.log.as_deref(), now),
            Self::Concurrency(concurrent) => concurrent.remaining(state.words),
        }
    }

    /// Microseconds until the state equals a fresh one. `None` if that happens only when places are given back.
    #[inline]
    pub(super) fn fresh_in(&self, state: &State, now: u64) -> Option<u64> {
        match self {
            Self::TokenBucket(bucket) => Some(bucket.fresh_in(state.words, now)),
            Self::SteppedBucket(stepped) => Some(stepped.fresh_in(state.words, now)),
            Self::FixedWindow(fixed) => Some(fixed.fresh_in(state.words, now)),
            Self::SlidingWindow(sliding) => Some(sliding.fresh_in(state.words, now)),
            Self::SlidingLog(sieve) => Some(sieve.fresh_in(state.log.as_deref(), now)),
            Self::Concurrency(_) => (state.words[0] == 0).then_some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::limit::Limit;

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
                let expected = limit.algorithm.step_at_length(words, now, cost);
                let step = limit.algorithm.step(words, now, cost);
                assert_eq!(step, expected, "{limit}: {words:?} at {now}, cost {cost}");
                words = step.0.words();
            }
        }
    }
}
