//! The exact values.

use super::*;
use crate::http::headers::{Field, Fields, Headers, Value};

#[test]
fn the_fields_read_as_in_the_draft() {
    let limits = [
        Limit::fixed_window(100, MINUTE).named("burst"),
        Limit::fixed_window(1_000, MINUTE * 60 * 24).named("daily"),
    ];
    let decision = spent(&limits, 50, 1);
    assert_eq!(rate_limit_policy(&decision), r#""burst";q=100;w=60, "daily";q=1000;w=86400"#);
    assert_eq!(rate_limit(&decision), r#""burst";r=50;t=60, "daily";r=950;t=86400"#);
}

#[test]
fn a_limit_without_a_name_is_called_after_its_rate() {
    let decision = spent(&[Limit::per_minute(100).burst(20)], 1, 1);
    assert_eq!(rate_limit_policy(&decision), r#""100/minute";q=100;w=60"#);
    assert_eq!(rate_limit(&decision), r#""100/minute";r=19;t=1"#);
}

#[test]
fn quotes_and_backslashes_in_a_name_are_escaped() {
    let decision = spent(&[Limit::per_minute(5).named(r#"a "b\c" d"#)], 1, 1);
    assert_eq!(rate_limit_policy(&decision), r#""a \"b\\c\" d";q=5;w=60"#);
    assert_eq!(rate_limit(&decision), r#""a \"b\\c\" d";r=4;t=12"#);
}

#[test]
fn concurrency_has_a_unit_and_no_window() {
    let decision = spent(&[Limit::concurrent(10)], 1, 4);
    assert_eq!(rate_limit_policy(&decision), r#""concurrent 10";q=10;qu="concurrent-requests""#);
    assert_eq!(rate_limit(&decision), r#""concurrent 10";r=6"#);
}

/// `w=0` is not a window, and rounding it up would announce a laxer limit.
#[test]
fn a_window_of_a_fraction_of_a_second_is_left_out() {
    let period = Duration::from_millis(100);
    let decision = spent(&[Limit::fixed_window(5, period)], 5, 2);
    assert_eq!(rate_limit_policy(&decision), r#""5 per 100 milliseconds";q=5"#);
    assert_eq!(rate_limit(&decision), r#""5 per 100 milliseconds";r=0;t=1"#);
    assert_eq!(retry_after(&decision), 1);

    let decision = spent(&[Limit::per(5, Duration::from_millis(1_500))], 1, 1);
    assert_eq!(rate_limit_policy(&decision), r#""5 per 1500 milliseconds";q=5"#);
}

#[test]
fn whoever_has_spent_nothing_waits_for_nothing() {
    let decision = Limit::per_minute(5).peek(&State::default(), 0, 1);
    assert_eq!(rate_limit(&decision), r#""5/minute";r=5;t=0"#);
    assert_eq!(x_reset(&decision, tightest(&decision).expect("one limit")), 0);
}

#[test]
fn a_soft_limit_says_so() {
    let decision = spent(&[Limit::per_minute(60).soft(2)], 1, 3);
    assert_eq!(rate_limit(&decision), r#""60/minute";r=57;t=1;sluicegate-soft"#);
}

#[test]
fn where_nothing_is_owed_there_is_nothing_to_say() {
    let decision = spent(&[], 1, 1);
    assert_eq!(rate_limit(&decision), "");
    assert_eq!(rate_limit_policy(&decision), "");
    assert!(tightest(&decision).is_none());
}

/// The day's window ends long after the client may come back.
#[test]
fn a_refusal_announces_the_limits_that_refuse() {
    let limits = [Limit::fixed_window(100, MINUTE * 60 * 24).named("daily"), Limit::per_minute(2)];
    let decision = spent(&limits, 1, 3);
    assert_eq!(rate_limit_policy(&decision), r#""daily";q=100;w=86400, "2/minute";q=2;w=60"#);
    assert_eq!(rate_limit(&decision), r#""2/minute";r=0;t=30"#);
    assert_eq!(retry_after(&decision), 30);
    assert_eq!(tightest(&decision).map(|status| status.remaining), Some(0));
}

/// What the count has left cannot be used before the gap is over.
#[test]
fn a_gap_is_announced_and_not_the_window_of_the_count() {
    let gap =
        |millis| Limit::per_minute(6).burst(10).min_gap(Duration::from_millis(millis)).named("gap");
    for (millis, seconds) in [(300, 1), (5_200, 6)] {
        for times in [1, 2] {
            let decision = spent(&[gap(millis)], 1, times);
            assert_eq!(rate_limit(&decision), format!(r#""gap";r=0;t={seconds}"#));
        }
        assert_eq!(retry_after(&spent(&[gap(millis)], 1, 2)), seconds);
    }
    // Beside a limit that does not refuse.
    let decision = spent(&[gap(300), Limit::fixed_window(9, MINUTE)], 1, 2);
    assert_eq!((rate_limit(&decision).as_str(), retry_after(&decision)), (r#""gap";r=0;t=1"#, 1));
}

/// Its queue has places left, but each would be too long a wait.
#[test]
fn a_limit_with_something_left_announces_no_window_beyond_the_moment_of_admission() {
    let limit = Limit::leaky_bucket(1, MINUTE * 60).queue(5);
    let mut state = limit.fresh();
    let patience = MINUTE * 90;
    let told = [(); 3].map(|()| limit.take_within(&mut state, 0, 1, patience));
    let refused = &told[2];
    assert_eq!(refused.retry_after(), Some(MINUTE * 30));
    assert_eq!(retry_after(refused), 1_800);
    assert_eq!(rate_limit(refused), r#""1/hour";r=0;t=1800"#);
}

/// It has places left in its queue, and nobody may wait there, or not for so long.
#[test]
fn a_limit_that_refuses_for_its_queue_announces_nothing_left() {
    let limit = Limit::leaky_bucket(1, SECOND).queue(10);
    for (waiting, patience, after) in [(1, Duration::ZERO, 2), (0, SECOND / 5, 1)] {
        let mut state = limit.fresh();
        for _ in 0..=waiting {
            assert!(limit.take_within(&mut state, 0, 1, MINUTE).is_admitted());
        }
        let refused = limit.take_within(&mut state, 0, 1, patience);
        assert_eq!(retry_after(&refused), after);
        assert_eq!(rate_limit(&refused), format!(r#""1/second";r=0;t={after}"#));
        assert_eq!(older(&refused), [11, 0, after]);
    }
}

/// The older fields of a decision: the limit, what remains, and when there is more.
fn older(decision: &Decision) -> [u64; 3] {
    #[derive(Default)]
    struct Numbers(Vec<(Field, u64)>);

    impl Headers for Numbers {
        fn contains_any(&self, _: &[Field]) -> bool {
            false
        }

        fn append(&mut self, _: Field, _: Value<'_>) {}

        fn insert(&mut self, field: Field, value: Value<'_>) {
            if let Value::Number(number) = value {
                self.0.push((field, number));
            }
        }

        fn each_line(&self, _: Field, _: &mut dyn FnMut(&[u8])) {}
    }

    let mut written = Numbers::default();
    Fields::X_RATE_LIMIT.write(decision, &mut written);
    [Field::XLimit, Field::XRemaining, Field::XReset].map(|field| {
        let number = written.0.iter().find(|(written, _)| *written == field);
        number.expect("a field").1
    })
}

#[test]
fn the_older_fields_speak_of_the_tightest_limit() {
    let limits = [Limit::per_minute(60), Limit::fixed_window(3, MINUTE * 60)];
    let decision = spent(&limits, 1, 1);
    let status = tightest(&decision).expect("two limits");
    assert_eq!(status.limit, limits[1]);
    assert_eq!((status.remaining, x_reset(&decision, status)), (2, 3_600));
}

#[test]
fn seconds_are_rounded_up_and_never_0() {
    let slow = Limit::per(2, SECOND * 3).burst(1);
    assert_eq!(retry_after(&spent(&[slow], 1, 2)), 2);
    let fast = Limit::per_second(1_000).burst(1);
    assert_eq!(retry_after(&spent(&[fast], 1, 2)), 1);
    // It is unknown when a place is given back.
    assert_eq!(retry_after(&spent(&[Limit::concurrent(1)], 1, 2)), 1);
    assert_eq!(retry_after(&spent(&[slow], 2, 1)), 1);
}

#[test]
fn integers_have_at_most_15_digits() {
    let large = 4_503_599_627_370_495;
    let decision = spent(&[Limit::concurrent(large)], 1, 1);
    assert_eq!(
        rate_limit_policy(&decision),
        format!(r#""concurrent {large}";q=999999999999999;qu="concurrent-requests""#)
    );
    assert_eq!(rate_limit(&decision), format!(r#""concurrent {large}";r=999999999999999"#));
    assert_eq!(seconds(Duration::MAX), 999_999_999_999_999);
}

#[test]
fn clients_do_not_see_a_shadow() {
    let limits =
        [Limit::per_minute(1).named("trial").soft(0).shadow(), Limit::per_minute(2).named("real")];
    for times in 1..=3 {
        let decision = spent(&limits, 1, times);
        assert_eq!(rate_limit_policy(&decision), "\"real\";q=2;w=60");
        assert!(!rate_limit(&decision).contains("trial"));
        assert!(!decision.is_soft());
        assert_eq!(tightest(&decision).map(|status| status.limit), Some(limits[1]));
    }
    let refused = spent(&limits, 1, 3);
    assert!(!refused.is_admitted());
    assert_eq!(retry_after(&refused), 30);
}
