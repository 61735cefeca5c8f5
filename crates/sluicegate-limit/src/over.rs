//! Limits that may be exceeded a little, with a warning.

use super::check::valid;
use super::definition::{AlgorithmSpec, Limit};
use super::error::LimitError;
use super::exact::EXACT;

impl Limit {
    /// Turns the limit into a [soft](Self::soft) limit, and admits `percent` more than it: more of the count of a
    /// window, a log or of concurrency, more of the burst of a token bucket. The surplus is rounded down, and at
    /// least 1.
    ///
    /// This is another way to write two numbers: the limit equals one that is made of them, and prints as such. A
    /// limit without a name is named after the larger number.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::fixed_window(100, Duration::from_secs(60)).over_percent(10);
    /// assert_eq!(limit, Limit::fixed_window(110, Duration::from_secs(60)).soft(100));
    ///
    /// let bucket: Limit = "100/minute burst 20 over 10%".parse().unwrap();
    /// assert_eq!(bucket, Limit::per_minute(100).burst(22).soft(20));
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_over_percent`](Self::try_over_percent) returns an error.
    #[track_caller]
    pub const fn over_percent(self, percent: u64) -> Self {
        valid(self.try_over_percent(percent))
    }

    /// Like [`over_percent`](Self::over_percent), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the surplus is zero or too large to stay exact, if the limit is a leaky bucket, or if it already has a soft
    /// limit.
    pub const fn try_over_percent(mut self, percent: u64) -> Result<Self, LimitError> {
        if percent == 0 {
            return Err(LimitError::new("0 percent over the limit is not over it"));
        }
        if self.soft.is_some() {
            return Err(LimitError::new(
                "the limit has a soft limit already, and what is over it would make another",
            ));
        }
        let before = self.capacity();
        let more = before as u128 * percent as u128 / 100;
        let most = before as u128 + if more == 0 { 1 } else { more };
        if most >= (EXACT / 2) as u128 {
            return Err(LimitError::new("so many percent over the limit are 2^52 or more"));
        }
        match &mut self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                *burst = most as u64;
            }
            AlgorithmSpec::LeakyBucket { .. } => {
                return Err(LimitError::new(
                    "a leaky bucket admits nothing over its queue: make the queue longer",
                ));
            }
            _ => self.count = most as u64,
        }
        self.soft = Some(before);
        self.checked()
    }
}
