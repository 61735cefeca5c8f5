//! 3 per second is 3 per second for ever.

use super::super::super::Limit;
use super::super::{DAY, HOUR, MINUTE, NOW, SECOND, admits, micros, secs};

/// After the burst, request number k is admitted at k periods divided by the count, rounded up to a microsecond,
/// however many came before. An error of a billionth would show.
#[test]
fn taking_each_token_as_it_comes_never_drifts() {
    let rates =
        [(3, SECOND), (7, DAY), (97, MINUTE), (1_000_003, HOUR), (999_983, SECOND + 7), (11, 13)];
    for (count, period) in rates {
        // A burst of one cannot hold the part of a token that comes within a microsecond.
        let limit = Limit::per(count, micros(period)).burst(2);
        let mut state = limit.fresh();
        assert!(admits(limit, &mut state, NOW));
        let due = |k: u64| {
            let exact = u128::from(k) * u128::from(period);
            NOW + u64::try_from(exact.div_ceil(u128::from(count))).expect("some years")
        };
        for k in 0..20_000 {
            if k > 0 && due(k) > due(k - 1) {
                assert!(!admits(limit, &mut state, due(k) - 1), "{limit}: too soon for {k}");
            }
            assert!(admits(limit, &mut state, due(k)), "{limit}: {k}");
        }
    }
}

#[test]
fn seven_hundred_million_per_second_are_that_many() {
    let limit = Limit::per_second(700_000_000).burst(1_400);
    let mut state = limit.fresh();
    assert!(limit.take(&mut state, NOW, 1_400).is_admitted());
    for micro in 1..10_000 {
        assert!(limit.take(&mut state, NOW + micro, 700).is_admitted());
        assert!(!admits(limit, &mut state, NOW + micro));
    }
}

#[test]
fn the_largest_number_of_32_bits_in_an_hour_is_exact() {
    let count = u64::from(u32::MAX);
    let limit = Limit::per_hour(count);
    let mut state = limit.fresh();
    assert!(limit.take(&mut state, NOW, count).is_admitted());
    let mut admitted = 0;
    for minute in 1..=60 {
        let now = NOW + minute * MINUTE;
        let left = limit.peek(&state, now, 1).remaining().expect("one limit");
        assert!(limit.take(&mut state, now, left).is_admitted());
        assert!(!admits(limit, &mut state, now));
        admitted += left;
    }
    assert_eq!(admitted, count);
}

/// A known limiter admits this, because the cost times the interval wraps.
#[test]
fn an_impossible_cost_never_wraps_into_a_possible_one() {
    let limit = Limit::per_hour(1).burst(100);
    let mut state = limit.fresh();
    for cost in [101, 5_124_097, 1 << 32, 1 << 53, u64::MAX / HOUR + 1, u64::MAX] {
        let decision = limit.take(&mut state, NOW, cost);
        assert!(!decision.is_admitted(), "{cost}");
        assert_eq!(decision.retry_after(), None, "{cost}");
    }
    assert!(limit.take(&mut state, NOW, 100).is_admitted());
}

#[test]
fn idling_grows_no_burst() {
    for limit in [
        Limit::per_minute(10),
        Limit::per_second(10).burst(10),
        Limit::per(3, secs(7)).burst(10),
        Limit::per_minute(10).refill(4, secs(9)),
    ] {
        let mut state = limit.fresh();
        assert!(admits(limit, &mut state, NOW));
        let later = NOW + 400 * DAY;
        assert!(limit.take(&mut state, later, 10).is_admitted(), "{limit}");
        assert!(!admits(limit, &mut state, later), "{limit}");
    }
}
