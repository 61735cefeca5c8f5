//! Options that change how an algorithm counts.

use core::time::Duration;

use crate::algorithm::sliding_log::MOST_ENTRIES;
use crate::error::LimitError;
use crate::internal::LimitInternals as _;
use crate::limit::{AlgorithmSpec, Limit, micros, valid};

impl Limit {
    /// At most `burst` at once, instead of the count. Token buckets only.
    ///
    /// # Panics
    ///
    /// If [`try_burst`](Self::try_burst) returns an error.
    #[track_caller]
    pub const fn burst(self, burst: u64) -> Self {
        valid(self.try_burst(burst))
    }

    /// Like [`burst`](Self::burst), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the burst is zero or too large to stay exact, or the limit is not a token bucket.
    pub const fn try_burst(mut self, most: u64) -> Result<Self, LimitError> {
        match &mut self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                *burst = most;
            }
            AlgorithmSpec::LeakyBucket { .. }
            | AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => {
                return Err(LimitError::new("a burst belongs to a token bucket"));
            }
        }
        self.checked()
    }

    /// Refills the token bucket in steps, `amount` tokens in every `every`, counted from the first token spent. The
    /// rate that was set before becomes its capacity.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// // Holds 60; ten drop in every ten seconds.
    /// let limit = Limit::per_minute(60).refill(10, Duration::from_secs(10));
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_refill`](Self::try_refill) returns an error.
    #[track_caller]
    pub const fn refill(self, amount: u64, every: Duration) -> Self {
        valid(self.try_refill(amount, every))
    }

    /// Like [`refill`](Self::refill), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the amount or the time is zero or too large, or the limit is not a token bucket.
    pub const fn try_refill(mut self, amount: u64, every: Duration) -> Result<Self, LimitError> {
        self.spec = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                AlgorithmSpec::SteppedBucket { burst }
            }
            AlgorithmSpec::LeakyBucket { .. }
            | AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => {
                return Err(LimitError::new("a refill in steps belongs to a token bucket"));
            }
        };
        self.count = amount;
        self.period = match micros(every) {
            Ok(every) => every,
            Err(reason) => return Err(LimitError::new(reason)),
        };
        self.checked()
    }

    /// Lets `len` requests wait in a leaky bucket. The next one is refused.
    ///
    /// # Panics
    ///
    /// If [`try_queue`](Self::try_queue) returns an error.
    #[track_caller]
    pub const fn queue(self, len: u64) -> Self {
        valid(self.try_queue(len))
    }

    /// Like [`queue`](Self::queue), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the queue is too long to stay exact or shorter than `delay_after`, or the limit is not a leaky bucket.
    pub const fn try_queue(mut self, len: u64) -> Result<Self, LimitError> {
        let AlgorithmSpec::LeakyBucket { queue, .. } = &mut self.spec else {
            return Err(LimitError::new("a queue belongs to a leaky bucket"));
        };
        *queue = len;
        self.checked()
    }

    /// Lets the first `requests` of a leaky bucket's queue go without delay: nginx's `delay=`. As many
    /// as the queue holds is nginx's `nodelay`.
    ///
    /// # Panics
    ///
    /// If [`try_delay_after`](Self::try_delay_after) returns an error.
    #[track_caller]
    pub const fn delay_after(self, requests: u64) -> Self {
        valid(self.try_delay_after(requests))
    }

    /// Like [`delay_after`](Self::delay_after), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the queue is shorter, or the limit is not a leaky bucket.
    pub const fn try_delay_after(mut self, requests: u64) -> Result<Self, LimitError> {
        let AlgorithmSpec::LeakyBucket { delay_after, .. } = &mut self.spec else {
            return Err(LimitError::new("a delay belongs to a leaky bucket"));
        };
        *delay_after = requests;
        self.checked()
    }

    /// Begins a fixed window with the first request in it, instead of at a multiple of the period.
    ///
    /// # Panics
    ///
    /// If the limit is not a fixed window.
    #[track_caller]
    pub const fn from_first(self) -> Self {
        valid(self.try_from_first())
    }

    /// Like [`from_first`](Self::from_first), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the limit is not a fixed window.
    pub const fn try_from_first(mut self) -> Result<Self, LimitError> {
        let AlgorithmSpec::FixedWindow { from_first } = &mut self.spec else {
            return Err(LimitError::new("only a fixed window begins from first use"));
        };
        *from_first = true;
        self.checked()
    }

    /// Merges the stamps of a sliding log that fall into the same `resolution`, so that a key holds
    /// at most `period / resolution + 2` of them. Stamps are rounded up: the log is never more
    /// generous than an exact one, and a place can be free up to one resolution later.
    ///
    /// # Panics
    ///
    /// If [`try_resolution`](Self::try_resolution) returns an error.
    #[track_caller]
    pub const fn resolution(self, resolution: Duration) -> Self {
        valid(self.try_resolution(resolution))
    }

    /// Like [`resolution`](Self::resolution), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the resolution does not divide the period, or the limit is not a sliding log.
    pub const fn try_resolution(mut self, step: Duration) -> Result<Self, LimitError> {
        match (&mut self.spec, micros(step)) {
            (AlgorithmSpec::SlidingLog { resolution }, Ok(step)) => *resolution = step,
            (AlgorithmSpec::SlidingLog { .. }, Err(_)) => {
                return Err(LimitError::new("the resolution is not a time in whole microseconds"));
            }
            _ => return Err(LimitError::new("a resolution belongs to a sliding log")),
        }
        self.checked()
    }

    /// Checks whether a log of this length can be kept: at most 65,536 stamps for each key, which take 1 MiB. Stores
    /// check this before a limit is used. Limits that are not logs always pass.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let day = Duration::from_secs(86_400);
    /// let log = Limit::sliding_log(3_000_000, day);
    /// assert!(log.check_length().is_err());
    /// assert!(log.resolution(Duration::from_secs(2)).check_length().is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// If the log is longer. Merge its stamps with a [`resolution`](Self::resolution), or use a
    /// [`sliding_window`](Self::sliding_window).
    pub fn check_length(&self) -> Result<(), LimitError> {
        if self.most_entries() <= MOST_ENTRIES {
            return Ok(());
        }
        Err(LimitError::new(
            "the log would hold more than 65536 stamps for each key: give it a `resolution`, so that the \
             period holds fewer, or use a sliding window",
        ))
    }

    /// Counts refused attempts too, so a client that keeps retrying stays out until it stops.
    /// Sliding windows and sliding logs only: a fixed window is empty at its end, whatever it refused.
    ///
    /// # Panics
    ///
    /// If the limit is not a sliding window or a sliding log.
    #[track_caller]
    pub const fn count_refused(self) -> Self {
        valid(self.try_count_refused())
    }

    /// Like [`count_refused`](Self::count_refused), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the limit is not a sliding window or a sliding log.
    pub const fn try_count_refused(mut self) -> Result<Self, LimitError> {
        self.count_refused = true;
        self.checked()
    }
}
