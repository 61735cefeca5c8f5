//! Making limits: what is refused, and what the error says.

use std::time::Duration;

use super::super::{Limit, LimitError};
use super::{micros, secs};
use crate::limit::AlgorithmSpec;

/// Checked when the tests are compiled.
const EVERYTHING: [Limit; 9] = [
    Limit::per_second(50).burst(10).named("token"),
    Limit::per(3, Duration::from_millis(100)),
    Limit::per_minute(60).refill(10, Duration::from_secs(10)).soft(50),
    Limit::leaky_bucket(10, Duration::from_secs(1)).queue(20).delay_after(8),
    Limit::fixed_window(5, Duration::from_secs(60)).from_first().ban(Duration::from_secs(3_600)),
    Limit::sliding_log(5, Duration::from_secs(60)).resolution(Duration::from_secs(1)),
    Limit::sliding_log(5, Duration::from_secs(60)).count_refused(),
    Limit::sliding_window(5, Duration::from_secs(60)).min_gap(Duration::from_micros(1)),
    Limit::concurrent(3),
];

#[test]
fn limits_are_constants() {
    assert_eq!(EVERYTHING[0], Limit::per_second(50).burst(10).named("token"));
    assert_eq!(EVERYTHING.map(|limit| limit.capacity()), [10, 3, 60, 21, 5, 5, 5, 5, 3]);
    assert!(
        EVERYTHING.iter().all(|limit| limit.is_held() == (limit.spec == AlgorithmSpec::Concurrent))
    );
    assert_eq!(EVERYTHING[8].period(), None);
    assert_eq!(EVERYTHING[1].period(), Some(Duration::from_millis(100)));
}

#[test]
fn fifty_per_second_is_fifty_per_second() {
    for (limit, period) in [
        (Limit::per_second(50), 1),
        (Limit::per_minute(50), 60),
        (Limit::per_hour(50), 3_600),
        (Limit::per_day(50), 86_400),
    ] {
        assert_eq!((limit.count(), limit.capacity(), limit.period()), (50, 50, Some(secs(period))));
    }
}

#[test]
fn errors_name_the_bad_part() {
    let nanos = Duration::from_nanos(1_500);
    let log = Limit::sliding_log(5, secs(60));
    let leaky = Limit::leaky_bucket(5, secs(60));
    let bucket = Limit::per_minute(5);
    let table: [(Result<Limit, LimitError>, &str); 38] = [
        (Limit::try_per(0, secs(1)), "the count is 0"),
        (Limit::try_per(1, secs(0)), "the period is 0"),
        (Limit::try_per(1, nanos), "a fraction of a microsecond"),
        (Limit::try_per(1, secs(1 << 40)), "142 years"),
        (Limit::try_per(1 << 52, secs(1)), "the count is 2^52"),
        (Limit::try_per((1 << 52) - 1, secs(86_400)), "the burst times the period"),
        (Limit::try_leaky_bucket(0, secs(1)), "the count is 0"),
        (Limit::try_leaky_bucket(1, nanos), "a fraction of a microsecond"),
        (Limit::try_fixed_window(0, secs(1)), "the count is 0"),
        (Limit::try_fixed_window(1, secs(0)), "the period is 0"),
        (Limit::try_sliding_log(0, secs(1)), "the count is 0"),
        (Limit::try_sliding_log(u64::MAX, secs(1)), "the count is 2^52"),
        (Limit::try_sliding_window(0, secs(1)), "the count is 0"),
        (Limit::try_sliding_window(1 << 32, secs(1)), "the count is 4,227,858,432 or more"),
        (
            Limit::try_sliding_window(1 << 31, secs(7 * 86_400) + micros(1)),
            "the count times the period",
        ),
        (Limit::try_concurrent(0), "the count is 0"),
        (Limit::try_concurrent(1 << 52), "the count is 2^52"),
        (bucket.try_burst(0), "the burst is 0"),
        (bucket.try_burst(u64::MAX), "the burst times the period"),
        (log.try_burst(5), "a burst belongs to a token bucket"),
        (leaky.try_burst(5), "a burst belongs to a token bucket"),
        (bucket.try_refill(0, secs(1)), "the count is 0"),
        (bucket.try_refill(1, secs(0)), "the period is 0"),
        (log.try_refill(1, secs(1)), "a refill in steps belongs to a token bucket"),
        (bucket.try_queue(5), "a queue belongs to a leaky bucket"),
        (leaky.try_queue(u64::MAX), "the queue times the period"),
        (leaky.try_delay_after(1), "the delay begins after more requests than the queue holds"),
        (bucket.try_delay_after(0), "a delay belongs to a leaky bucket"),
        (bucket.try_from_first(), "only a fixed window begins from first use"),
        (log.try_resolution(secs(7)), "the resolution does not divide the period"),
        (log.try_resolution(secs(0)), "the resolution is not a time in whole microseconds"),
        (bucket.try_resolution(secs(1)), "a resolution belongs to a sliding log"),
        (
            bucket.try_count_refused(),
            "refused attempts are counted by sliding windows and sliding logs only",
        ),
        (bucket.try_min_gap(secs(0)), "the gap is not a time"),
        (bucket.try_ban(nanos), "the ban is not a time"),
        (bucket.try_soft(5), "the soft limit is not below"),
        (bucket.try_named(""), "the name is empty"),
        (bucket.try_named("a name of more than thirty-one bytes"), "longer than 31 bytes"),
    ];
    for (i, (made, part)) in table.into_iter().enumerate() {
        let error = made.expect_err(part).to_string();
        assert!(error.contains(part), "row {i}: {error}");
    }
    for name in ["naïve", "tab\t", "line\n"] {
        assert!(bucket.try_named(name).unwrap_err().to_string().contains("printable ASCII"));
    }
}

#[test]
fn an_option_that_makes_an_earlier_one_nonsense_is_an_error() {
    assert!(Limit::per_minute(10).soft(5).try_burst(5).is_err());
    assert!(Limit::leaky_bucket(1, secs(1)).queue(5).delay_after(3).try_queue(2).is_err());
}

#[test]
#[should_panic = "the count is 0: nothing would ever be admitted"]
fn nonsense_panics() {
    Limit::per_second(0);
}

#[test]
#[should_panic = "the resolution does not divide the period"]
fn nonsense_of_an_option_panics() {
    Limit::sliding_log(5, secs(60)).resolution(secs(7)).fresh();
}

/// A count that nobody will ever reach needs no memory and breaks no arithmetic.
#[test]
fn an_astronomical_log_takes_no_astronomical_memory() {
    let limit = Limit::sliding_log((1 << 52) - 1, secs(86_400));
    let mut state = limit.fresh();
    assert!(limit.take(&mut state, 0, 1).is_admitted());
}
