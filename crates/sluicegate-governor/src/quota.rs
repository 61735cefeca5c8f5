use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;
use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;

const NANOS: u64 = 1_000;

/// The longest time in which a burst may refill, in nanoseconds: a quarter of what governor's integers hold, because it
/// adds and multiplies them without checks.
const LONGEST: u128 = 1 << 62;

/// Converts a limit into a governor quota. The limit's name and soft limit are lost.
///
/// # Errors
///
/// When governor cannot keep the limit exactly: it is not a plain token bucket, its tokens do not come at an interval of
/// whole nanoseconds, or its burst is too large.
///
/// ```
/// use sluicegate_core::Limit;
///
/// let quota = sluicegate_governor::quota(&Limit::per_second(50).burst(100)).unwrap();
/// assert_eq!(quota.replenish_interval().as_millis(), 20);
/// assert_eq!(quota.burst_size().get(), 100);
/// assert!(sluicegate_governor::quota(&Limit::per_second(3)).is_err());
/// ```
pub fn quota(limit: &Limit) -> Result<Quota, LimitError> {
    let (true, Some(period)) = (limit.is_plain_bucket(), limit.period()) else {
        return Err(LimitError::new(
            "governor supports only plain token buckets: no windows, steps, queues, gaps, bans, \
             carried counts or trial mode",
        ));
    };
    let count = u128::from(limit.count());
    if period.as_nanos() % count != 0 {
        return Err(LimitError::new(
            "governor refills at an interval of whole nanoseconds, which this rate does not have",
        ));
    }
    let burst = u32::try_from(limit.capacity()).ok().and_then(NonZeroU32::new);
    let Some(burst) = burst else {
        return Err(LimitError::new("governor's bursts have to be below 2^32"));
    };
    let interval = period.as_nanos() / count;
    if interval * u128::from(burst.get()) >= LONGEST {
        return Err(LimitError::new(
            "governor cannot count this long: the burst takes 146 years or more to refill",
        ));
    }
    let quota = Quota::with_period(Duration::from_nanos(interval as u64));
    Ok(quota.expect("the interval is not zero").allow_burst(burst))
}

/// Converts a governor quota into a limit, for the rule of a layer whose store is [`Around`] a limiter with that quota.
///
/// [`Around`]: crate::Around
///
/// # Errors
///
/// When the numbers are too large for a limit to stay exact.
///
/// ```
/// use governor::Quota;
/// use sluicegate_core::Limit;
///
/// let quota = Quota::per_second(50.try_into().unwrap());
/// assert_eq!(sluicegate_governor::limit(quota), Ok(Limit::per(1, std::time::Duration::from_millis(20)).burst(50)));
/// ```
pub fn limit(quota: Quota) -> Result<Limit, LimitError> {
    let interval = quota.replenish_interval().as_nanos();
    let Ok(interval) = u64::try_from(interval) else {
        return Err(LimitError::new("the quota's interval is longer than 584 years"));
    };
    // One in `interval` nanoseconds, as a count in whole microseconds.
    let divisor = gcd(interval, NANOS);
    let period = Duration::from_micros(interval / divisor);
    Limit::try_per(NANOS / divisor, period)?.try_burst(quota.burst_size().get().into())
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_governor_truncates_is_refused() {
        for limit in [Limit::per_second(3), Limit::per_second(700_000_000), Limit::per_day(7)] {
            assert!(quota(&limit).unwrap_err().to_string().contains("whole nanoseconds"));
        }
    }

    #[test]
    fn what_governor_has_no_words_for_is_refused() {
        let minute = Duration::from_secs(60);
        let limits = [
            Limit::per_minute(1).ban(minute),
            Limit::per_minute(1).min_gap(minute),
            Limit::per_minute(1).named("a").carried(),
            Limit::per_minute(1).shadow(),
            Limit::per_minute(1).refill(1, minute),
            Limit::leaky_bucket(1, minute),
            Limit::fixed_window(1, minute),
            Limit::sliding_log(1, minute),
            Limit::sliding_window(1, minute),
            Limit::concurrent(1),
        ];
        for limit in limits {
            assert!(quota(&limit).unwrap_err().to_string().contains("plain"), "{limit}");
        }
        assert!(quota(&Limit::per_minute(6).soft(5).named("soft")).is_ok());
    }

    #[test]
    fn what_would_wrap_is_refused() {
        let wide = Limit::per_second(1_000_000_000).burst(1 << 32);
        assert!(quota(&wide).unwrap_err().to_string().contains("2^32"));
        let long = Limit::per(1, Duration::from_secs(3_600_000)).burst(1_250);
        assert!(quota(&long).is_ok());
        let longer = Limit::per(1, Duration::from_secs(3_600_000)).burst(1_250 * 1_025);
        assert!(
            longer.period().is_some() && quota(&longer).unwrap_err().to_string().contains("146")
        );
    }

    #[test]
    fn a_quota_and_its_limit_say_the_same() {
        for nanos in [1, 10, 999, 1_000, 20_000_000, 86_400_000_000_000] {
            let interval = Duration::from_nanos(nanos);
            let burst = NonZeroU32::new(7).unwrap();
            let original = Quota::with_period(interval).unwrap().allow_burst(burst);
            let limit = limit(original).unwrap();
            assert_eq!(limit.capacity(), 7);
            assert_eq!(quota(&limit), Ok(original), "{limit}");
        }
    }
}
