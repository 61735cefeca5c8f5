use std::time::{Duration, SystemTime};

use throttlecrab::{AdaptiveStore, RateLimiter};

use crate::accuracy::{Contestant, Promise, Rate};

/// 2026-09-21 01:33:00 UTC.
const START: Duration = Duration::from_secs(1_789_954_380);

/// It counts periods in whole seconds.
pub(super) fn bucket(rate: Rate, burst: u64) -> Option<Contestant> {
    let seconds = rate.every().as_secs();
    if Duration::from_secs(seconds) != rate.every() {
        return None;
    }
    let (most, count, seconds) = (burst as i64, rate.count as i64, seconds as i64);
    let mut limiter = RateLimiter::new(AdaptiveStore::new());
    let admits = move |at, cost| {
        let now = SystemTime::UNIX_EPOCH + START + Duration::from_micros(at);
        let answer = limiter.rate_limit("key", most, count, seconds, cost as i64, now);
        answer.expect("the rate is not zero").0
    };
    Some(Contestant::at_once("throttlecrab", Promise::bucket(rate, burst), admits))
}
