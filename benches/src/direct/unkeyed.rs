use ratelimit::Ratelimiter;

use super::{Bucket, Direct, Verdict};

/// leaky-bucket, called with `try_acquire`.
pub struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    /// A limiter without keys, fair, as it comes; keyed use is not documented.
    pub fn new(bucket: Bucket) -> Self {
        Self(Self::builder(bucket).build())
    }

    /// A limiter that is not fair, which may be faster by its documentation: while there are tokens it takes them
    /// without a lock and without reading a clock.
    ///
    /// It is for one thread. In version 1.1.2 it can lose all tokens when two threads ask at once: a thread that reads
    /// the state while another one has taken it writes the empty state back.
    pub fn unfair(bucket: Bucket) -> Self {
        Self(Self::builder(bucket).fair(false).build())
    }

    fn builder(bucket: Bucket) -> leaky_bucket::Builder {
        let mut builder = leaky_bucket::RateLimiter::builder();
        let burst = bucket.burst as usize;
        builder.initial(burst).max(burst).refill(1).interval(bucket.interval);
        builder
    }
}

impl Direct<()> for LeakyBucket {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        Verdict::of(self.0.try_acquire(1))
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
