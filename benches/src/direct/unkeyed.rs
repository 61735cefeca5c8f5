use ratelimit::Ratelimiter;

use super::{Bucket, Direct, Verdict};

/// leaky-bucket, not fair, which its documentation says may be faster, called with `try_acquire`. While there are
/// tokens it takes them without reading a clock.
pub struct LeakyBucket(leaky_bucket::RateLimiter);

/// Longer than a thread holds the lock, unless it is not running.
const RETRIES: u32 = 10_000_000;

impl LeakyBucket {
    /// A limiter without keys; keyed use is not documented.
    pub fn new(bucket: Bucket) -> Self {
        let mut builder = leaky_bucket::RateLimiter::builder();
        let burst = bucket.burst as usize;
        builder.initial(burst).max(burst).refill(1).interval(bucket.interval).fair(false);
        Self(builder.build())
    }
}

impl Direct<()> for LeakyBucket {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        // It also refuses while another thread holds its lock. It is then asked again.
        Verdict::of((0..RETRIES).any(|_| self.0.try_acquire(1)))
    }
}

/// ratelimit, asked with `try_wait`.
pub struct Ratelimit(Ratelimiter);

impl Ratelimit {
    /// A limiter without keys; keyed use is not documented.
    pub fn new(bucket: Bucket) -> Self {
        let burst = bucket.burst.into();
        let builder = Ratelimiter::builder(1).period(bucket.interval);
        let built = builder.max_tokens(burst).initial_available(burst).build();
        Self(built.expect("as many tokens as fit"))
    }
}

impl Direct<()> for Ratelimit {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        Verdict::of(self.0.try_wait().is_ok())
    }
}
