//! Turns the requested numbers into the arithmetic, or returns what is wrong with them.

use core::time::Duration;

use super::algorithm::Algorithm;
use super::algorithm::concurrency::Concurrency;
use super::algorithm::fixed_window::FixedWindow;
use super::algorithm::sliding_log::SlidingLog;
use super::algorithm::sliding_window::SlidingWindow;
use super::algorithm::stepped_bucket::SteppedBucket;
use super::algorithm::token_bucket::TokenBucket;
use super::definition::{AlgorithmSpec, Limit};
use super::error::LimitError;
use super::exact::EXACT;
use super::name::Name;

impl Limit {
    pub(super) const fn make(
        spec: AlgorithmSpec,
        count: u64,
        period: Duration,
    ) -> Result<Self, LimitError> {
        let period = match micros(period) {
            Ok(period) => period,
            Err(reason) => return Err(LimitError::new(reason)),
        };
        let limit = Self {
            spec,
            count,
            period,
            soft: None,
            ban: 0,
            after: 0,
            within: 0,
            gap: 0,
            count_refused: false,
            carried: false,
            shadow: false,
            when_full: None,
            plain: false,
            carried_words: false,
            name: Name::NONE,
            algorithm: Algorithm::Concurrency(Concurrency::new(count)),
            id: 0,
        };
        limit.checked()
    }

    /// Turns the requested numbers into the arithmetic, or returns what is wrong with them.
    pub(super) const fn checked(mut self) -> Result<Self, LimitError> {
        if self.count == 0 {
            return Err(LimitError::new("the count is 0: nothing would ever be admitted"));
        }
        if self.count >= EXACT / 2 {
            return Err(LimitError::new("the count is 2^52 or more: too large to stay exact"));
        }
        self.algorithm = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst }
                if burst == 0 =>
            {
                return Err(LimitError::new("the burst is 0: nothing would ever be admitted"));
            }
            AlgorithmSpec::TokenBucket { burst } => {
                match TokenBucket::new(self.count, self.period, burst, burst) {
                    Some(bucket) => Algorithm::TokenBucket(bucket),
                    None => return Err(TOO_LARGE_BURST),
                }
            }
            AlgorithmSpec::SteppedBucket { burst } => {
                if burst >= EXACT / 2 {
                    return Err(TOO_LARGE_BURST);
                }
                Algorithm::SteppedBucket(SteppedBucket::new(self.count, self.period, burst))
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => {
                if delay_after > queue {
                    return Err(LimitError::new(
                        "the delay begins after more requests than the queue holds",
                    ));
                }
                if queue >= EXACT / 2 {
                    return Err(TOO_LARGE_QUEUE);
                }
                match TokenBucket::new(self.count, self.period, queue + 1, delay_after + 1) {
                    Some(bucket) => Algorithm::TokenBucket(bucket),
                    None => return Err(TOO_LARGE_QUEUE),
                }
            }
            AlgorithmSpec::FixedWindow { from_first } => {
                Algorithm::FixedWindow(FixedWindow::new(self.count, self.period, from_first))
            }
            AlgorithmSpec::SlidingLog { resolution } => {
                if resolution == 0 || self.period % resolution != 0 {
                    return Err(LimitError::new("the resolution does not divide the period"));
                }
                Algorithm::SlidingLog(SlidingLog {
                    count: self.count,
                    period: self.period,
                    resolution,
                })
            }
            AlgorithmSpec::SlidingWindow => match SlidingWindow::new(self.count, self.period) {
                Some(sliding) => Algorithm::SlidingWindow(sliding),
                None => {
                    return Err(LimitError::new(
                        "the count times the period is too large to stay exact (below 2^52), \
                         or the count is 4,227,858,432 or more",
                    ));
                }
            },
            AlgorithmSpec::Concurrent => Algorithm::Concurrency(Concurrency::new(self.count)),
        };
        if let Some(soft) = self.soft {
            if soft >= self.capacity() {
                return Err(LimitError::new(
                    "the soft limit is not below the most that the limit admits at once",
                ));
            }
        }
        match self.spec {
            AlgorithmSpec::SlidingWindow | AlgorithmSpec::SlidingLog { .. } => {}
            AlgorithmSpec::FixedWindow { .. } if self.count_refused => {
                return Err(LimitError::new(
                    "a fixed window is empty at its end, however many attempts it refused: count them by a \
                     sliding window or a sliding log, or ban",
                ));
            }
            _ if self.count_refused => {
                return Err(LimitError::new(
                    "refused attempts are counted by sliding windows and sliding logs only",
                ));
            }
            _ => {}
        }
        if self.carried && self.name.as_bytes().is_empty() {
            return Err(LimitError::new(
                "what was spent is carried over under a name: name the limit before",
            ));
        }
        let queues = matches!(self.spec, AlgorithmSpec::LeakyBucket { .. });
        let has_words = !self.count_refused && !queues && !self.shadow;
        self.plain = !self.has_extra_state() && has_words;
        let has_account =
            !matches!(self.algorithm, Algorithm::SlidingLog(_) | Algorithm::Concurrency(_));
        self.carried_words =
            self.carried && has_account && has_words && self.ban == 0 && self.gap == 0;
        self.id = self.identity();
        Ok(self)
    }
}

const TOO_LARGE_BURST: LimitError = LimitError::new(
    "the burst times the period is too large to stay exact: with the rate reduced to lowest terms, \
     it must stay below 2^52",
);

const TOO_LARGE_QUEUE: LimitError = LimitError::new(
    "the queue times the period is too large to stay exact: with the rate reduced to lowest terms, \
     it must stay below 2^52",
);

/// The microseconds of a duration, or what is wrong with it.
pub(super) const fn micros(duration: Duration) -> Result<u64, &'static str> {
    if duration.is_zero() {
        return Err("the period is 0");
    }
    if duration.subsec_nanos() % 1_000 != 0 {
        return Err("the period has a fraction of a microsecond");
    }
    if duration.as_micros() >= (EXACT / 2) as u128 {
        return Err("the period is 142 years or more: too large to stay exact");
    }
    Ok(duration.as_micros() as u64)
}

/// The panic of a constructor, made from an error.
#[track_caller]
pub(super) const fn valid(limit: Result<Limit, LimitError>) -> Limit {
    match limit {
        Ok(limit) => limit,
        Err(error) => panic!("{}", error.reason()),
    }
}
