//! How limits are made.

use std::time::Duration;

use super::algorithm::Algorithm;
use super::concurrency::Concurrency;
use super::exact::EXACT;
use super::fixed_window::FixedWindow;
use super::name::Name;
use super::sliding_log::SlidingLog;
use super::sliding_window::SlidingWindow;
use super::stepped_bucket::SteppedBucket;
use super::token_bucket::TokenBucket;
use super::{AlgorithmSpec, Limit, LimitError};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Limit {
    /// A token bucket: `count` tokens a second, at most `count` at once unless a
    /// [`burst`](Self::burst) says otherwise. `per_second(50)` means fifty per second.
    ///
    /// # Panics
    ///
    /// Where [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_second(count: u64) -> Self {
        Self::per(count, SECOND)
    }

    /// A token bucket: `count` tokens a minute.
    ///
    /// # Panics
    ///
    /// Where [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_minute(count: u64) -> Self {
        Self::per(count, MINUTE)
    }

    /// A token bucket: `count` tokens an hour.
    ///
    /// # Panics
    ///
    /// Where [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_hour(count: u64) -> Self {
        Self::per(count, HOUR)
    }

    /// A token bucket: `count` tokens a day of 24 hours.
    ///
    /// # Panics
    ///
    /// Where [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_day(count: u64) -> Self {
        Self::per(count, DAY)
    }

    /// A token bucket: `count` tokens in every `period`, refilled continuously.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per(10, Duration::from_secs(10)).burst(5);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per(count: u64, period: Duration) -> Self {
        valid(Self::try_per(count, period))
    }

    /// [`per`](Self::per) for values from configuration.
    ///
    /// # Errors
    ///
    /// When the count or the period is zero, the period has a fraction of a microsecond, or the
    /// numbers are too large to stay exact.
    pub const fn try_per(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::TokenBucket { burst: count }, count, period)
    }

    /// A leaky bucket: requests leave at a fixed rate of `count` in every `period`, in order of
    /// arrival. How many may wait is said by [`queue`](Self::queue); without it, none, however patient
    /// they are.
    ///
    /// A request admitted with a [`wait`](super::Decision::wait) is let go when that has passed. This
    /// is nginx's `limit_req`: `rate=10r/s` with `burst=20` is
    /// `leaky_bucket(10, one_second).queue(20)`; `delay=8` and `nodelay` are
    /// [`delay_after`](Self::delay_after).
    ///
    /// # Panics
    ///
    /// Where [`try_leaky_bucket`](Self::try_leaky_bucket) returns an error.
    #[track_caller]
    pub const fn leaky_bucket(count: u64, period: Duration) -> Self {
        valid(Self::try_leaky_bucket(count, period))
    }

    /// [`leaky_bucket`](Self::leaky_bucket) for values from configuration.
    ///
    /// # Errors
    ///
    /// As [`try_per`](Self::try_per).
    pub const fn try_leaky_bucket(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::LeakyBucket { queue: 0, delay_after: 0 }, count, period)
    }

    /// A fixed window: `count` in each window of one `period`. Windows are aligned to the Unix epoch,
    /// so that every process agrees on them, unless they begin
    /// [`from_first`](Self::from_first) use.
    ///
    /// Twice the count can pass around a border: that is the algorithm's nature.
    ///
    /// # Panics
    ///
    /// Where [`try_fixed_window`](Self::try_fixed_window) returns an error.
    #[track_caller]
    pub const fn fixed_window(count: u64, period: Duration) -> Self {
        valid(Self::try_fixed_window(count, period))
    }

    /// [`fixed_window`](Self::fixed_window) for values from configuration.
    ///
    /// # Errors
    ///
    /// As [`try_per`](Self::try_per).
    pub const fn try_fixed_window(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::FixedWindow { from_first: false }, count, period)
    }

    /// A sliding log: never more than `count` in any interval of one `period`, half-open, so that at
    /// exactly one period a place is free again. Remembers each request: `count` entries of 16 bytes
    /// for each key at most; [`resolution`](Self::resolution) bounds that further. Stores and the text form
    /// refuse a log of more than 65,536 entries: see [`check_length`](Self::check_length).
    ///
    /// # Panics
    ///
    /// Where [`try_sliding_log`](Self::try_sliding_log) returns an error.
    #[track_caller]
    pub const fn sliding_log(count: u64, period: Duration) -> Self {
        valid(Self::try_sliding_log(count, period))
    }

    /// [`sliding_log`](Self::sliding_log) for values from configuration.
    ///
    /// # Errors
    ///
    /// As [`try_per`](Self::try_per).
    pub const fn try_sliding_log(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::SlidingLog { resolution: 1 }, count, period)
    }

    /// A sliding window counter: what the current window holds, plus the previous one's count
    /// weighted by how much of it still overlaps, rounded down, stays within `count`. Two numbers
    /// instead of a log; it assumes that the previous window's requests came evenly.
    ///
    /// # Panics
    ///
    /// Where [`try_sliding_window`](Self::try_sliding_window) returns an error.
    #[track_caller]
    pub const fn sliding_window(count: u64, period: Duration) -> Self {
        valid(Self::try_sliding_window(count, period))
    }

    /// [`sliding_window`](Self::sliding_window) for values from configuration.
    ///
    /// # Errors
    ///
    /// As [`try_per`](Self::try_per).
    pub const fn try_sliding_window(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::SlidingWindow, count, period)
    }

    /// Concurrency: at most `count` at a time. What is taken is held until it is given back. The middleware
    /// does that when the response's body has ended, failed or been dropped, when the upgraded connection
    /// has closed, or when the response is no longer awaited. With [`Hold::Head`](crate::adapter::Hold::Head) it does
    /// so when the head of the response is there.
    ///
    /// # Panics
    ///
    /// Where [`try_concurrent`](Self::try_concurrent) returns an error.
    #[track_caller]
    pub const fn concurrent(count: u64) -> Self {
        valid(Self::try_concurrent(count))
    }

    /// [`concurrent`](Self::concurrent) for values from configuration.
    ///
    /// # Errors
    ///
    /// When the count is zero, or 2^52 and more.
    pub const fn try_concurrent(count: u64) -> Result<Self, LimitError> {
        // Any period will do: the arithmetic has none.
        Self::make(AlgorithmSpec::Concurrent, count, SECOND)
    }

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
            name: Name::NONE,
            algorithm: Algorithm::Concurrency(Concurrency::new(count)),
            id: 0,
        };
        limit.checked()
    }

    /// Makes the arithmetic of what was asked for, or says what is wrong with it.
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
                         or the count does not fit 32 bits",
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
        self.plain = !self.has_extra_state() && !self.count_refused && !queues && !self.shadow;
        self.id = self.identity();
        Ok(self)
    }

    /// Tells the states of algorithms apart. Windows from first use are those of others where what was
    /// spent is carried over.
    const fn algorithm_code(&self) -> u64 {
        let code = match self.spec {
            AlgorithmSpec::TokenBucket { .. } => 1,
            AlgorithmSpec::LeakyBucket { .. } => 2,
            AlgorithmSpec::SteppedBucket { .. } => 3,
            AlgorithmSpec::FixedWindow { from_first } if from_first && !self.carried => 5,
            AlgorithmSpec::FixedWindow { .. } => 4,
            AlgorithmSpec::SlidingLog { .. } => 6,
            AlgorithmSpec::SlidingWindow => 7,
            AlgorithmSpec::Concurrent => 8,
        };
        if self.carried { CARRIED + code } else { code }
    }

    /// FNV-1a over what gives a state its meaning: the same in every process and every version.
    const fn identity(&self) -> u64 {
        let name = self.name.as_bytes();
        if name.is_empty() { self.identity_by_numbers() } else { self.identity_as(name) }
    }

    /// Of a limit without a name: two that differ in anything but what a client is warned of are two, and so
    /// is one that is on trial the one that it becomes.
    const fn identity_by_numbers(&self) -> u64 {
        let (more, further) = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                (burst, 0)
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => (queue, delay_after),
            _ => (0, 0),
        };
        let numbers =
            [self.count, self.period, more, further, self.gap, self.ban, self.after, self.within];
        let hash = fnv_numbers(self.meaning(), &numbers);
        fnv(hash, &[self.count_refused as u8])
    }

    /// The identity of a limit of that name.
    pub(super) const fn identity_as(&self, name: &[u8]) -> u64 {
        fnv(self.meaning(), name)
    }

    /// The numbers that give a state its meaning, and the table that it is kept in.
    const fn meaning(&self) -> u64 {
        let numbers = match (self.spec, self.algorithm) {
            // Stamps that were rounded up mean other moments where they are finer, and a shorter period would
            // drop those that a longer one still counts.
            (AlgorithmSpec::SlidingLog { resolution }, _) if self.carried => {
                [resolution, self.period, 0]
            }
            _ if self.carried => [0; 3],
            (_, Algorithm::TokenBucket(bucket)) => bucket.scale(),
            (AlgorithmSpec::SteppedBucket { .. }, _) => [self.count, self.period, 0],
            // PlainOutcome beyond the count means places booked in later windows, so the count gives the
            // number its meaning.
            (AlgorithmSpec::FixedWindow { .. }, _) => [self.period, self.count, 0],
            (AlgorithmSpec::SlidingLog { resolution }, _) => [self.period, resolution, 0],
            (_, Algorithm::SlidingWindow(sliding)) => [self.period, sliding.tick(), 0],
            _ => [0; 3],
        };
        let [a, b, c] = numbers;
        let hash = fnv_numbers(0xcbf2_9ce4_8422_2325, &[self.algorithm_code(), a, b, c]);
        // States of different make are kept in different tables.
        let counts_refusals = self.after > 0 && !self.carried;
        fnv(hash, &[self.has_extra_state() as u8 + 2 * counts_refusals as u8])
    }
}

/// Apart from those that numbers belong to, and from rows in which what was spent had one account.
const CARRIED: u64 = 32;

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

/// What a constructor that panics makes of an error.
#[track_caller]
pub(super) const fn valid(limit: Result<Limit, LimitError>) -> Limit {
    match limit {
        Ok(limit) => limit,
        Err(error) => panic!("{}", error.reason()),
    }
}

const fn fnv_numbers(mut hash: u64, numbers: &[u64]) -> u64 {
    let mut i = 0;
    while i < numbers.len() {
        hash = fnv(hash, &numbers[i].to_le_bytes());
        i += 1;
    }
    hash
}

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}
