//! How limits are made: a constructor for each algorithm.

use core::time::Duration;

use crate::error::LimitError;
use crate::limit::{AlgorithmSpec, Limit, valid};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Limit {
    /// A token bucket: `count` tokens a second, at most `count` at once unless a
    /// [`burst`](Self::burst) says otherwise. `per_second(50)` means fifty per second.
    ///
    /// A client that finds the bucket full may send the burst and what is refilled meanwhile: up to
    /// `burst + count - 1` requests within one second. [`sliding_log`](Self::sliding_log) admits no more than `count`
    /// in any second.
    ///
    /// # Panics
    ///
    /// If [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_second(count: u64) -> Self {
        Self::per(count, SECOND)
    }

    /// A token bucket: `count` tokens a minute, at most `count` at once unless a [`burst`](Self::burst) says otherwise.
    /// Up to `burst + count - 1` requests pass within one minute; see [`per_second`](Self::per_second).
    ///
    /// # Panics
    ///
    /// If [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_minute(count: u64) -> Self {
        Self::per(count, MINUTE)
    }

    /// A token bucket: `count` tokens an hour, at most `count` at once unless a [`burst`](Self::burst) says otherwise.
    /// Up to `burst + count - 1` requests pass within one hour; see [`per_second`](Self::per_second).
    ///
    /// # Panics
    ///
    /// If [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_hour(count: u64) -> Self {
        Self::per(count, HOUR)
    }

    /// A token bucket: `count` tokens a day of 24 hours, at most `count` at once unless a [`burst`](Self::burst) says
    /// otherwise. Up to `burst + count - 1` requests pass within one day; see [`per_second`](Self::per_second).
    ///
    /// # Panics
    ///
    /// If [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per_day(count: u64) -> Self {
        Self::per(count, DAY)
    }

    /// A token bucket: `count` tokens in every `period`, refilled continuously.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per(10, Duration::from_secs(10)).burst(5);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_per`](Self::try_per) returns an error.
    #[track_caller]
    pub const fn per(count: u64, period: Duration) -> Self {
        valid(Self::try_per(count, period))
    }

    /// Like [`per`](Self::per), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the count or the period is zero, the period has a fraction of a microsecond, or the numbers are too large
    /// to stay exact.
    pub const fn try_per(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::TokenBucket { burst: count }, count, period)
    }

    /// A leaky bucket: requests leave at a fixed rate of `count` in every `period`, in order of arrival.
    /// [`queue`](Self::queue) sets how many may wait; without it, none may.
    ///
    /// A request admitted with a [`wait`](crate::Decision::wait) is let go when that has passed. This
    /// is nginx's `limit_req`: `rate=10r/s` with `burst=20` is
    /// `leaky_bucket(10, one_second).queue(20)`; `delay=8` and `nodelay` are
    /// [`delay_after`](Self::delay_after).
    ///
    /// # Panics
    ///
    /// If [`try_leaky_bucket`](Self::try_leaky_bucket) returns an error.
    #[track_caller]
    pub const fn leaky_bucket(count: u64, period: Duration) -> Self {
        valid(Self::try_leaky_bucket(count, period))
    }

    /// Like [`leaky_bucket`](Self::leaky_bucket), for values from configuration.
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
    /// Around a border, twice the count can pass. That is the nature of the algorithm.
    ///
    /// # Panics
    ///
    /// If [`try_fixed_window`](Self::try_fixed_window) returns an error.
    #[track_caller]
    pub const fn fixed_window(count: u64, period: Duration) -> Self {
        valid(Self::try_fixed_window(count, period))
    }

    /// Like [`fixed_window`](Self::fixed_window), for values from configuration.
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
    /// If [`try_sliding_log`](Self::try_sliding_log) returns an error.
    #[track_caller]
    pub const fn sliding_log(count: u64, period: Duration) -> Self {
        valid(Self::try_sliding_log(count, period))
    }

    /// Like [`sliding_log`](Self::sliding_log), for values from configuration.
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
    /// If [`try_sliding_window`](Self::try_sliding_window) returns an error.
    #[track_caller]
    pub const fn sliding_window(count: u64, period: Duration) -> Self {
        valid(Self::try_sliding_window(count, period))
    }

    /// Like [`sliding_window`](Self::sliding_window), for values from configuration.
    ///
    /// # Errors
    ///
    /// As [`try_per`](Self::try_per).
    pub const fn try_sliding_window(count: u64, period: Duration) -> Result<Self, LimitError> {
        Self::make(AlgorithmSpec::SlidingWindow, count, period)
    }

    /// Concurrency: at most `count` at a time. What is taken is held until it is given back. The middleware
    /// does that when the response's body has ended, failed or been dropped, when the upgraded connection
    /// has closed, or when the response is no longer awaited. With `Hold::Head` it does
    /// so when the head of the response is there.
    ///
    /// # Panics
    ///
    /// If [`try_concurrent`](Self::try_concurrent) returns an error.
    #[track_caller]
    pub const fn concurrent(count: u64) -> Self {
        valid(Self::try_concurrent(count))
    }

    /// Like [`concurrent`](Self::concurrent), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the count is zero, or 2^52 or more.
    pub const fn try_concurrent(count: u64) -> Result<Self, LimitError> {
        // Any period will do: the algorithm does not use it.
        Self::make(AlgorithmSpec::Concurrent, count, SECOND)
    }
}
