use tokio_rate_limit::{RateLimiter, RateLimiterConfig};

use super::{Bucket, Direct, Verdict};
use crate::keys::Key;

/// tokio-rate-limit with its default, the token bucket, which its documentation recommends; `check` has
/// not been asynchronous since 0.10. Keys are text.
pub struct TokioRateLimit {
    limiter: RateLimiter,
    cost: u64,
}

impl TokioRateLimit {
    /// The map grows with the keys; its constructors take no size.
    ///
    /// It only knows rates by the second, and at one a second no key stays refused. So a bucket with a burst of one
    /// is made with as many tokens as seconds, and a request costs all of them.
    pub fn new(bucket: Bucket) -> Self {
        let cost = if bucket.burst == 1 { bucket.interval.as_secs() } else { 1 };
        let burst = u64::from(bucket.burst) * cost;
        let limiter = RateLimiter::new(RateLimiterConfig { requests_per_second: 1, burst });
        Self { limiter: limiter.expect("neither the rate nor the burst is zero"), cost }
    }
}

impl<K: Key> Direct<K> for TokioRateLimit {
    #[inline]
    fn take(&self, key: &K, buffer: &mut String) -> Verdict {
        let key = key.text(buffer);
        let decision = match self.cost {
            1 => self.limiter.check(key),
            cost => self.limiter.check_with_cost(key, cost),
        };
        Verdict::of(decision.permitted)
    }
}
