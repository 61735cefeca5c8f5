//! Worked examples from the literature on these algorithms, with the answers given there.

use super::super::testing::decide;
use super::super::{Attempt, Limit, State};
use super::{HOUR, MINUTE, NOW, SECOND, admits, admitted, secs};

/// A time of day.
fn at(hours: u64, minutes: u64, seconds: u64) -> u64 {
    NOW + hours * HOUR + minutes * MINUTE + seconds * SECOND
}

#[test]
fn sliding_counter_weighs_the_previous_minute_by_its_overlap() {
    let limit = Limit::sliding_window(7, secs(60));
    let mut state = limit.fresh();
    assert_eq!(admitted(limit, &mut state, at(1, 0, 30), 5), 5);
    assert_eq!(admitted(limit, &mut state, at(1, 1, 18), 3), 3);
    // 3 + 5 × 0.7 = 6.5: there is room for one more, and then for none.
    assert!(admits(limit, &mut state, at(1, 1, 18)));
    assert!(!admits(limit, &mut state, at(1, 1, 18)));
}

#[test]
fn sliding_counter_admits_the_hundredth_at_a_quarter_past() {
    let limit = Limit::sliding_window(100, secs(3_600));
    let mut state = limit.fresh();
    assert!(limit.take(&mut state, at(12, 30, 0), 84).is_admitted());
    assert!(limit.take(&mut state, at(13, 15, 0), 36).is_admitted());
    // 84 × 0.75 + 36 = 99.
    assert!(admits(limit, &mut state, at(13, 15, 0)));
    assert!(!admits(limit, &mut state, at(13, 15, 0)));
}

#[test]
fn sliding_log_that_counts_refusals_refuses_a_client_that_comes_too_often() {
    let limit = Limit::sliding_log(2, secs(60)).count_refused();
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, at(1, 0, 1)));
    assert!(admits(limit, &mut state, at(1, 0, 30)));
    assert!(!admits(limit, &mut state, at(1, 0, 50)));
    // The attempt refused at 1:00:50 is the only one in the last minute.
    assert!(admits(limit, &mut state, at(1, 1, 40)));
    assert!(!admits(limit, &mut state, at(1, 1, 41)));
}

#[test]
fn sliding_log_that_counts_refusals_refuses_two_of_eleven() {
    let limit = Limit::sliding_log(5, secs(60)).count_refused();
    let mut state = limit.fresh();
    let attempts = [
        (at(9, 30, 20), true),
        (at(9, 30, 25), true),
        (at(9, 30, 50), true),
        (at(9, 31, 10), true),
        (at(9, 31, 25), true),
        (at(9, 31, 45), true),
        (at(9, 31, 48), true),
        (at(9, 32, 5), true),
        (at(9, 32, 9), false),
        (at(9, 32, 15), false),
        (at(9, 32, 46), true),
    ];
    for (now, expected) in attempts {
        assert_eq!(
            admits(limit, &mut state, now),
            expected,
            "{} s past 9:30",
            (now - at(9, 30, 0)) / SECOND
        );
    }
}

#[test]
fn fixed_window_lets_twice_the_count_pass_around_a_border() {
    let limit = Limit::fixed_window(5, secs(60));
    let mut state = limit.fresh();
    assert_eq!(admitted(limit, &mut state, at(11, 0, 59), 10), 5);
    assert_eq!(admitted(limit, &mut state, at(11, 1, 0), 10), 5);
}

#[test]
fn stepped_bucket_waits_for_its_next_refill() {
    let limit = Limit::per_minute(3).refill(3, secs(60));
    let mut state = limit.fresh();
    assert!(admits(limit, &mut state, at(10, 0, 0)));
    assert!(admits(limit, &mut state, at(10, 0, 10)));
    assert!(admits(limit, &mut state, at(10, 0, 35)));
    assert!(!admits(limit, &mut state, at(10, 0, 45)));
    assert!(admits(limit, &mut state, at(10, 1, 0)));
}

#[test]
fn sub_windows_add_up_to_the_window() {
    let limit = Limit::sliding_log(100, secs(3_600)).resolution(secs(20 * 60));
    let mut state = limit.fresh();
    assert_eq!(admitted(limit, &mut state, at(2, 10, 0), 10), 10);
    assert_eq!(admitted(limit, &mut state, at(2, 30, 0), 20), 20);
    assert_eq!(admitted(limit, &mut state, at(2, 50, 0), 30), 30);
    assert!(admits(limit, &mut state, at(2, 50, 0)), "the 61st");
    assert_eq!(admitted(limit, &mut state, at(2, 50, 0), 100), 39);
}

#[test]
fn several_limits_on_one_route_hold_at_once() {
    let limits = [
        Limit::per(500, secs(2)),
        Limit::sliding_log(2_000, secs(10)),
        Limit::fixed_window(10_000, secs(60)),
    ];
    let mut states = limits.each_ref().map(Limit::fresh);
    let mut burst =
        |now: u64| (0..20_000).take_while(|_| all_admit(&limits, &mut states, now)).count();
    // The first holds at any instant, the second in any ten seconds, the third in the minute.
    assert_eq!(burst(at(8, 0, 0)), 500);
    assert_eq!(burst(at(8, 0, 1)), 250);
    assert_eq!(burst(at(8, 0, 3)), 500);
    assert_eq!(burst(at(8, 0, 5)), 500);
    assert_eq!(burst(at(8, 0, 7)), 250);
    assert_eq!(burst(at(8, 0, 9)), 0);
    let mut total = 2_000;
    for second in 10..60 {
        total += burst(at(8, 0, second));
    }
    assert_eq!(total, 10_000);
    assert_eq!(burst(at(8, 1, 0)), 500);
}

fn all_admit(limits: &[Limit; 3], states: &mut [State; 3], now: u64) -> bool {
    let attempts =
        limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost: 1 });
    decide(&mut attempts.collect::<Vec<_>>(), now, None, crate::Keys::One).is_admitted()
}

/// The first example of the README and of the guide, and the limit without its burst.
#[test]
fn a_greedy_client_gets_the_burst_and_what_drops_in_within_the_minute() {
    for (limit, most) in [(Limit::per_minute(100).burst(20), 119), (Limit::per_minute(100), 199)] {
        let mut state = limit.fresh();
        // It tries every millisecond, for three minutes.
        let admitted: Vec<_> = (0..3 * 60_000)
            .map(|millis| NOW + millis * 1_000)
            .filter(|now| admits(limit, &mut state, *now))
            .collect();
        let in_the_minute_from = |at: &usize| {
            admitted[*at..].iter().take_while(|now| **now < admitted[*at] + MINUTE).count()
        };
        let greediest = (0..admitted.len()).map(|at| in_the_minute_from(&at)).max();
        assert_eq!(greediest, Some(most), "{limit}");
    }
    // What never admits more than its count in any minute.
    let log = Limit::sliding_log(100, secs(60));
    let mut state = log.fresh();
    let first = (0..60_000).filter(|millis| admits(log, &mut state, NOW + millis * 1_000)).count();
    assert_eq!(first, 100);
}
