use tokio_rate_limit::RateLimiter;
use tokio_rate_limit::algorithm::{Algorithm, LeakyBucket, TokenBucket};

use super::paused::Paused;
use crate::accuracy::{Contestant, Promise, Rate};

/// It knows whole numbers per second alone.
pub(super) fn buckets(rate: Rate, burst: u64) -> Vec<Contestant> {
    let seconds = rate.every().as_secs();
    if seconds == 0 || !rate.count.is_multiple_of(seconds) {
        return Vec::new();
    }
    let (each, promise) = (rate.count / seconds, Promise::bucket(rate, burst));
    vec![
        bucket("tokio-rate-limit, token bucket", promise.clone(), || TokenBucket::new(burst, each)),
        bucket("tokio-rate-limit, leaky bucket", promise, || LeakyBucket::new(burst, each)),
    ]
}

fn bucket<A: Algorithm + 'static>(
    name: &'static str,
    promise: Promise,
    algorithm: impl FnOnce() -> A,
) -> Contestant {
    let mut paused = Paused::new();
    let limiter = paused.make(|| RateLimiter::from_algorithm(algorithm()));
    Contestant::at_once(name, promise, move |at, cost| {
        paused.at(at, async { limiter.check_with_cost("key", cost).permitted })
    })
}
