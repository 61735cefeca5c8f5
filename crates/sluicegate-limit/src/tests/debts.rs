//! What requests have used beyond a limit is taken from the time that follows, by every algorithm.

use std::time::Duration;

use proptest::prelude::*;

use super::super::testing::decide;
use super::super::{Attempt, Keys, Limit, State};
use super::strategies::{small_limit, turn};
use super::{DAY, HOUR, MINUTE, NOW, SECOND, micros, secs};

/// `count` in each `period`, by every algorithm that counts over time.
fn limits(count: u64, period: Duration) -> [Limit; 13] {
    [
        Limit::per(count, period),
        Limit::per(count, period).named("a").carried(),
        Limit::per(count, period).refill(count, period),
        Limit::per(count, period).refill(count, period).named("a").carried(),
        Limit::leaky_bucket(count, period).queue(count - 1).delay_after(count - 1),
        Limit::fixed_window(count, period),
        Limit::fixed_window(count, period).from_first(),
        Limit::fixed_window(count, period).named("a").carried(),
        Limit::sliding_window(count, period),
        Limit::sliding_window(count, period).named("a").carried(),
        Limit::sliding_log(count, period),
        Limit::sliding_log(count, period).resolution(period / 50),
        Limit::sliding_log(count, period).named("a").carried(),
    ]
}

/// Takes `asked` and settles it to `used`, at the same moment. Returns whether it was admitted.
fn use_at(limit: &Limit, state: &mut State, now: u64, asked: u64, used: u64) -> bool {
    let decision = limit.take(state, now, asked);
    if let Some(status) = decision.statuses().next().filter(|_| decision.is_admitted()) {
        limit.settle(state, now, &status.receipt, asked, used);
    }
    decision.is_admitted()
}

#[test]
fn a_day_of_greedy_streams_uses_what_the_limit_allows_in_a_day() {
    for (streams, asked, used) in
        [(1, 1, 50_000), (10, 1, 50_000), (100, 1, 50_000), (10, 900, 1_100), (7, 1, 10_001)]
    {
        for limit in limits(10_000, secs(60)) {
            let (mut state, mut now, mut total) = (limit.fresh(), NOW + 17 * SECOND, 0);
            while now < NOW + DAY {
                // So many at once, which last 20 seconds each.
                let decisions: Vec<_> =
                    (0..streams).map(|_| limit.take(&mut state, now, asked)).collect();
                now += 20 * SECOND;
                for status in decisions.iter().filter(|one| one.is_admitted()) {
                    let receipt = &status.statuses().next().expect("one limit").receipt;
                    limit.settle(&mut state, now, receipt, asked, used);
                    total += used;
                }
                let peek = limit.peek(&state, now, asked);
                now += peek.retry_after().map_or(0, |retry| retry.as_micros() as u64);
            }
            let allowed = 24 * 60 * 10_000;
            // Those that were under way at the end, and the burst.
            let most = allowed + 10_000 + streams * used;
            assert!(total <= most, "{limit}, {streams} of {used}: {total} of {most}");
            assert!(total >= allowed * 8 / 10, "{limit}, {streams} of {used}: {total}");
        }
    }
}

#[test]
fn five_days_of_a_budget_used_at_once_shut_it_for_about_four_days() {
    let day = secs(86_400);
    for place in [0, HOUR, 12 * HOUR, 23 * HOUR, DAY - 1] {
        for limit in limits(2_000_000, day) {
            let (mut state, now) = (limit.fresh(), NOW + place);
            assert!(use_at(&limit, &mut state, now, 1, 10_000_000));
            let refused = limit.take(&mut state, now, 1);
            let retry = refused.retry_after().expect("time pays").as_micros() as u64;
            // A window or a log is empty a period after what was used in it.
            let days = retry as f64 / DAY as f64;
            assert!((3.99..=5.03).contains(&days), "{limit}: {days} days");
            assert!(!limit.take(&mut state.clone(), now + retry - 1, 1).is_admitted(), "{limit}");
            assert!(limit.take(&mut state, now + retry, 1).is_admitted(), "{limit}");
        }
    }
}

/// A million at once under a limit of ten thousand a minute.
#[test]
fn one_request_owes_all_that_it_has_used() {
    for limit in limits(10_000, secs(60)) {
        let (mut state, mut now) = (limit.fresh(), NOW);
        for _ in 0..5 {
            let before = now;
            assert!(use_at(&limit, &mut state, now, 1, 1_000_000), "{limit}");
            let retry = limit.take(&mut state, now, 1).retry_after().expect("time pays");
            now += retry.as_micros() as u64;
            let minutes = (now - before) as f64 / MINUTE as f64;
            assert!((98.9..=101.1).contains(&minutes), "{limit}: {minutes} minutes");
        }
    }
}

#[test]
fn a_debt_survives_a_clock_that_steps_back() {
    for limit in limits(10, secs(60)) {
        let (mut state, now) = (limit.fresh(), NOW + HOUR);
        assert!(use_at(&limit, &mut state, now, 1, 100));
        for back in [1, SECOND, MINUTE, HOUR] {
            assert!(!limit.take(&mut state, now - back, 1).is_admitted(), "{limit}");
        }
        assert!(!limit.take(&mut state, now - HOUR + 8 * MINUTE, 1).is_admitted(), "{limit}");
        assert!(limit.take(&mut state, now - HOUR + 11 * MINUTE, 1).is_admitted(), "{limit}");
    }
}

#[test]
fn a_debt_of_centuries_is_counted_without_overflow() {
    for limit in limits(10, secs(60)).into_iter().chain(limits(10, Duration::from_millis(60))) {
        let mut state = limit.fresh();
        for _ in 0..3 {
            assert!(
                !use_at(&limit, &mut state, NOW, 1, 1) || {
                    let receipt = limit.take(&mut state, NOW, 1);
                    let receipt = receipt.statuses().next().expect("one limit").receipt;
                    limit.settle(&mut state, NOW, &receipt, 1, u64::MAX);
                    true
                }
            );
        }
        for later in [0, DAY, 30 * DAY] {
            let refused = limit.take(&mut state, NOW + later, 1);
            assert!(refused.retry_after().is_some_and(|retry| retry > secs(60)), "{limit}");
        }
    }
}

/// `Rejection::queue` promises a wait of up to its patience.
#[test]
fn a_second_window_of_requests_waits_in_the_first_at_any_place_in_it() {
    for limit in limits(10, secs(1)) {
        if limit.to_string().starts_with("leaky") {
            continue;
        }
        for place in (0..SECOND).step_by(37_003) {
            let (mut state, now) = (limit.fresh(), NOW + place);
            let mut last = 0;
            for turn in 0..20 {
                let decision = limit.take_within(&mut state, now, 1, secs(2));
                let wait = decision.wait().as_micros() as u64;
                assert!(decision.is_admitted(), "{limit}: {turn} at {place}");
                assert!(turn >= 10 || wait == 0, "{limit}: {turn} at {place}");
                assert!((last..=2 * SECOND).contains(&wait), "{limit}: {wait} at {place}");
                last = wait;
            }
            // With less patience than it takes, a request is refused at once, and told when to come.
            let refused = limit.take_within(&mut state, now, 10, micros(last / 2));
            let retry = refused.retry_after().expect("time makes room");
            let then = now + retry.as_micros() as u64;
            assert!(limit.take(&mut state, then, 10).is_admitted(), "{limit} at {place}");
        }
    }
}

#[test]
fn a_debt_keeps_a_queue_waiting_too() {
    for limit in limits(10, secs(60)) {
        let mut state = limit.fresh();
        assert!(use_at(&limit, &mut state, NOW, 1, 35));
        if limit.to_string().starts_with("leaky") {
            assert!(!limit.take_within(&mut state, NOW, 1, secs(600)).is_admitted());
            continue;
        }
        let waiting = limit.take_within(&mut state, NOW, 1, secs(600));
        let minutes = waiting.wait().as_secs_f64() / 60.0;
        assert!(waiting.is_admitted() && (2.5..=4.1).contains(&minutes), "{limit}: {minutes}");
        assert!(!limit.take_within(&mut state, NOW, 1, secs(60)).is_admitted(), "{limit}");
    }
}

proptest! {
    #![proptest_config(crate::tests::cases(100))]

    /// Settled upwards at any time, with requests that wait in between.
    #[test]
    fn retry_after_is_honest_with_a_debt(
        limit in small_limit(),
        turns in prop::collection::vec((turn(), 1_u64..5, 0_u64..60, turn()), 1..30),
    ) {
        let (mut state, mut now, mut retry) = (limit.fresh(), NOW, None);
        for (turned, cost, more, patience) in turns {
            now += turned.micros(&limit, retry);
            let cost = cost.min(limit.capacity());
            let patience = Some(patience.micros(&limit, retry)).filter(|time| *time > 0 && more % 3 == 0);
            let mut attempt = [Attempt { limit: &limit, state: &mut state, cost }];
            let decision = decide(&mut attempt, now, patience.map(micros), Keys::One);
            if decision.is_admitted() {
                let receipt = decision.statuses().next().expect("one limit").receipt;
                limit.settle(&mut state, now, &receipt, cost, cost + more);
            }
            let refused = limit.take(&mut state.clone(), now, cost);
            retry = refused.retry_after();
            let Some(wait) = retry.map(|retry| retry.as_micros() as u64) else { continue };
            // The attempt of a moment ago is not recorded here.
            prop_assume!(!limit.count_refused && limit.ban == 0);
            let then = |wait: u64| limit.take(&mut state.clone(), now + wait, cost).is_admitted();
            prop_assert!(!then(wait - 1), "{}: one tick before {}", limit, wait);
            prop_assert!(then(wait), "{}: after {}", limit, wait);
        }
    }
}

/// The response is settled piece by piece, between requests of others, and too much is given back at the end.
#[test]
fn a_debt_that_comes_in_pieces_is_owed_like_one_that_comes_at_once() {
    for limit in limits(100, secs(60)) {
        for pieces in [1, 3, 7, 20] {
            let (mut state, mut now) = (limit.fresh(), NOW + 11 * SECOND);
            let taken = limit.take(&mut state, now, 1);
            let receipt = taken.statuses().next().expect("one limit").receipt;
            for piece in 0..pieces {
                let (from, to) = (1_000 * piece / pieces, 1_000 * (piece + 1) / pieces);
                limit.settle(&mut state, now, &receipt, from.max(1), to);
                now += SECOND / 10;
                assert!(!limit.take(&mut state, now, 50).is_admitted() || to < 100, "{limit}");
            }
            let retry = limit.take(&mut state, now, 1).retry_after().expect("time pays");
            let minutes = retry.as_secs_f64() / 60.0;
            assert!((8.7..=11.5).contains(&minutes), "{limit} in {pieces}: {minutes} minutes");
        }
    }
}
