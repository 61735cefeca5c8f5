use std::sync::Arc;
use std::time::Duration;

use clock_lib::ManualClock;
use rate_net::{Algorithm, DirectLimiter, RateLimiter};

use crate::accuracy::{Contestant, Promise, Rate, Weighing};

pub(super) fn buckets(rate: Rate, burst: u64) -> impl Iterator<Item = Contestant> {
    let bucket =
        |name, algorithm| contestant(name, Promise::bucket(rate, burst), rate, burst, algorithm);
    let buckets = [
        bucket("rate-net, token bucket", Algorithm::TokenBucket),
        bucket("rate-net, leaky bucket", Algorithm::LeakyBucket),
    ];
    buckets.into_iter().flatten()
}

pub(super) fn windows(rate: Rate) -> impl Iterator<Item = Contestant> {
    let window = |name, promise, algorithm| contestant(name, promise, rate, rate.count, algorithm);
    let weighing = Weighing { rounded_down: false, from_first: false };
    let windows = [
        window("rate-net, fixed window", Promise::windows(rate, false), Algorithm::FixedWindow),
        window(
            "rate-net, sliding window",
            Promise::counter(rate, weighing),
            Algorithm::SlidingWindowCounter,
        ),
        window("rate-net, sliding log", Promise::log(rate), Algorithm::SlidingWindowLog),
    ];
    windows.into_iter().flatten()
}

/// `None` if it rejects this rate: its log holds at most 65,536 entries.
fn contestant(
    name: &'static str,
    promise: Promise,
    rate: Rate,
    burst: u64,
    algorithm: Algorithm,
) -> Option<Contestant> {
    let clock = Arc::new(ManualClock::new());
    let limiter: DirectLimiter<_> = RateLimiter::builder()
        .algorithm(algorithm)
        .quota(rate.count.try_into().ok()?, rate.every())
        .burst(burst.try_into().ok()?)
        .clock(Arc::clone(&clock))
        .try_build_direct()
        .ok()?;
    let mut now = 0;
    Some(Contestant::at_once(name, promise, move |at, cost| {
        clock.advance(Duration::from_micros(at - now));
        now = at;
        u32::try_from(cost).is_ok_and(|cost| limiter.check_n(cost).is_allow())
    }))
}
