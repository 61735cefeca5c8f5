use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};

use crate::accuracy::{Contestant, Promise, Rate};

/// It counts in 32 bits.
pub(super) fn bucket(rate: Rate, burst: u64) -> Option<Contestant> {
    let number = |number: u64| NonZeroU32::new(number.try_into().ok()?);
    let per = match rate.every().as_secs() {
        1 => Quota::per_second,
        60 => Quota::per_minute,
        3_600 => Quota::per_hour,
        _ => return None,
    };
    let quota = per(number(rate.count)?).allow_burst(number(burst)?);
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
    let mut now = 0;
    Some(Contestant::at_once("governor", Promise::bucket(rate, burst), move |at, cost| {
        clock.advance(Duration::from_micros(at - now));
        now = at;
        number(cost).is_some_and(|cost| matches!(limiter.check_n(cost), Ok(Ok(()))))
    }))
}
