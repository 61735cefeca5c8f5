//! Places that are booked ahead: in order of arrival, within the patience, none in vain.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::testing::decide;
use super::super::super::{Attempt, Decision, Keys, Limit, State};
use super::super::strategies::{limit, small_limit, turn};
use super::super::{NOW, SECOND, micros, secs};
use super::Used;
use crate::limit::AlgorithmSpec;

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn requests_leave_in_order_of_arrival_and_within_the_patience(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9, turn()), 1..50),
    ) {
        let mut used = Used::new(limit);
        let mut last = 0;
        for (turn, cost, patience) in turns {
            used.turn(turn);
            let patience = patience.micros(&limit, used.retry);
            let peek = limit.peek(&used.state, used.now, cost.min(limit.capacity()));
            let decision = used.take_within(cost, patience);
            let wait = decision.wait().as_micros() as u64;
            if matches!(limit.spec, AlgorithmSpec::LeakyBucket { .. }) {
                // The queue has a length. Patience does not make it longer.
                let in_time = patience == 0 || peek.wait() <= micros(patience);
                prop_assert_eq!(peek.is_admitted() && in_time, decision.is_admitted());
                prop_assert!(!decision.is_admitted() || peek.wait() == decision.wait());
            } else {
                prop_assert!(wait <= patience);
                prop_assert!(decision.is_admitted() || peek.retry_after() > Some(micros(patience))
                    || limit.spec == AlgorithmSpec::SlidingWindow && limit.count_refused, "refused though it would have waited");
            }
            if decision.is_admitted() {
                prop_assert!(used.now + wait >= last, "{}: overtaken", limit);
                last = used.now + wait;
            }
        }
    }

    #[test]
    fn a_queue_holds_as_many_as_it_was_made_for(
        queue in 0_u64..10,
        delay in 0_u64..10,
        count in 1_u64..20,
        turns in prop::collection::vec(turn(), 1..60),
    ) {
        let limit = Limit::leaky_bucket(count, secs(1)).queue(queue).delay_after(delay.min(queue));
        let mut used = Used::new(limit);
        let mut leaves: Vec<u64> = Vec::new();
        for turn in turns {
            used.turn(turn);
            let decision = used.take(1);
            if decision.is_admitted() {
                leaves.push(used.now + decision.wait().as_micros() as u64);
            }
            let waiting = leaves.iter().filter(|leaves| **leaves > used.now).count() as u64;
            prop_assert!(waiting <= queue - delay.min(queue));
        }
    }

    /// However many requests of one key wait, and whether they stay or leave. Beside the shared limit there is one that is
    /// charged as if nobody had waited.
    #[test]
    fn all_who_wait_together_keep_at_most_half_of_a_shared_bucket_from_the_others(
        own in (1_u64..500, 1_u64..4).prop_map(|(period, burst)| Limit::per(1, micros(period)).burst(burst)),
        (count, period, burst) in (1_u64..9, 1_u64..2_000, 1_u64..30),
        is_leaky in any::<bool>(),
        gap in prop::option::of(1_u64..500),
        requests in prop::collection::vec((0_u64..300, 0_u64..5_000, any::<bool>(), any::<bool>()), 1..60),
    ) {
        let shared = match is_leaky {
            true => Limit::leaky_bucket(count, micros(period)).queue(burst),
            false => Limit::per(count, micros(period)).burst(burst),
        };
        let shared = gap.map_or(shared, |gap| shared.min_gap(micros(gap)));
        let (mut state, mut all, mut at_once) = (own.fresh(), shared.fresh(), shared.fresh());
        let mut now = NOW;
        for (later, patience, is_newcomer, leaves) in requests {
            now += later;
            let mut newcomer = own.fresh();
            let state = if is_newcomer { &mut newcomer } else { &mut state };
            let mut attempts = [
                Attempt { limit: &own, state, cost: 1 },
                Attempt { limit: &shared, state: &mut all, cost: 1 },
            ];
            let decision = decide(&mut attempts, now, Some(micros(patience)), Keys::Several);
            shared.tidy(&mut at_once, now);
            if decision.is_admitted() {
                let charged = shared.spend(&mut at_once, now, 1, 0);
                if leaves {
                    let receipt = decision.statuses().nth(1).expect("two limits").receipt;
                    shared.settle(&mut all, now, &receipt, 1, 0);
                    shared.settle(&mut at_once, now, &charged, 1, 0);
                }
            }
            let time = |time: Option<Duration>| time.expect("a bucket drains").as_micros() as u64;
            let (reset, plain) = (time(shared.fresh_in(&all, now)), time(shared.fresh_in(&at_once, now)));
            let half = (shared.capacity() * shared.period).div_ceil(shared.count);
            let half = half.max(shared.gap).div_ceil(2) + 1;
            prop_assert!(reset <= plain + half, "{shared}: {reset} instead of {plain}");
        }
    }

    /// If a place is given back before its time, the next request gets it, if it was the last in line.
    #[test]
    fn the_last_in_line_gives_its_place_back(
        limit in small_limit(),
        turns in prop::collection::vec((turn(), 1_u64..5), 1..30),
        patience in turn(),
    ) {
        // A gap that begins when its request leaves the queue looks like an earlier one.
        if matches!(limit.spec, AlgorithmSpec::LeakyBucket { .. }) && limit.gap > 0 {
            return Ok(());
        }
        // A place in a sliding window fills the windows that it skips: for a gap, or because the previous count still
        // weighs in the last of few ticks. With what was used beyond the limit, it is up to twice the count, and a ban may
        // end with the window.
        let skips = limit.gap > 0 || limit.period <= 3 * limit.count;
        if limit.spec == AlgorithmSpec::SlidingWindow && skips {
            return Ok(());
        }
        let mut used = Used::by(limit, &turns);
        let patience = patience.micros(&limit, used.retry);
        let first = used.take_within(1, patience);
        if !first.is_admitted() {
            return Ok(());
        }
        let receipt = first.statuses().next().expect("one limit").receipt;
        limit.settle(&mut used.state, used.now, &receipt, 1, 0);
        let again = used.take_within(1, patience);
        prop_assert_eq!(again.verdict(), first.verdict(), "{}", limit);
    }
}

fn both(limits: &[Limit; 2], states: &mut [State; 2], now: u64, patience: Duration) -> Option<u64> {
    both_on(Keys::One, limits, states, now, patience)
}

fn both_on(
    keys: Keys,
    limits: &[Limit; 2],
    states: &mut [State; 2],
    now: u64,
    patience: Duration,
) -> Option<u64> {
    let attempts =
        limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost: 1 });
    let decision = decide(
        &mut attempts.collect::<Vec<_>>(),
        now,
        Some(patience).filter(|time| !time.is_zero()),
        keys,
    );
    decision.is_admitted().then(|| decision.wait().as_micros() as u64)
}

#[test]
fn a_request_that_would_wait_in_vain_is_refused_at_once() {
    let limit = Limit::per_second(1);
    let mut state = limit.fresh();
    assert_eq!(limit.take(&mut state, NOW, 1).wait(), secs(0));
    assert_eq!(limit.take_within(&mut state, NOW, 1, secs(1)).wait(), secs(1));
    let refused = limit.take_within(&mut state, NOW, 1, secs(2) - Duration::from_micros(1));
    assert!(!refused.is_admitted());
    assert_eq!(refused.retry_after(), Some(secs(2)));
    // And it left nothing behind.
    assert_eq!(limit.take_within(&mut state, NOW, 1, secs(2)).wait(), secs(2));
}

#[test]
fn several_limits_agree_on_one_moment() {
    let limits = [Limit::per_second(1), Limit::fixed_window(2, secs(10))];
    let mut states = limits.each_ref().map(Limit::fresh);
    let mut wait = |patience| both(&limits, &mut states, NOW, patience);
    assert_eq!(wait(secs(0)), Some(0));
    assert_eq!(wait(secs(60)), Some(SECOND));
    // The window is full until its end, and the bucket has long been ready.
    assert_eq!(wait(secs(9)), None);
    assert_eq!(wait(secs(60)), Some(10 * SECOND));
    assert_eq!(wait(secs(60)), Some(11 * SECOND));
    assert_eq!(wait(secs(60)), Some(20 * SECOND));
}

/// A queue that reaches into the next window would fill the rest of this one. If other keys share the window, that is
/// not booked.
#[test]
fn a_queue_that_reaches_over_a_border_is_told_when_it_does_no_longer() {
    let limits = [Limit::leaky_bucket(1, secs(10)).queue(5), Limit::sliding_window(100, secs(60))];
    let mut states = limits.each_ref().map(Limit::fresh);
    let now = NOW + 55 * SECOND;
    assert_eq!(both(&limits, &mut states, now, secs(0)), Some(0));
    assert_eq!(both(&limits, &mut states.clone(), now, secs(0)), Some(10 * SECOND));
    let attempts = limits.iter().zip(&mut states);
    let mut attempts: Vec<_> =
        attempts.map(|(limit, state)| Attempt { limit, state, cost: 1 }).collect();
    let decision = decide(&mut attempts, now, None, Keys::Several);
    assert!(!decision.is_admitted());
    let refused: Vec<_> = decision.statuses().map(|status| status.refused).collect();
    assert_eq!(refused, [false, true]);
    assert_eq!(decision.retry_after(), Some(secs(5)));
    let later = now + 5 * SECOND;
    let wait = both_on(Keys::Several, &limits, &mut states, later, secs(0));
    assert_eq!(wait, Some(5 * SECOND));
}

/// A customer's own limit, and one that all customers share.
#[test]
fn a_waiting_request_does_not_block_a_limit_that_others_share() {
    let (own, shared) = (Limit::per_hour(1), Limit::per_second(100));
    let (mut customer, mut all) = (own.fresh(), shared.fresh());
    let mut ask = |customer: &mut State, patience| {
        let mut attempts = [
            Attempt { limit: &own, state: customer, cost: 1 },
            Attempt { limit: &shared, state: &mut all, cost: 1 },
        ];
        decide(&mut attempts, NOW, Some(patience), Keys::Several)
    };
    assert!(ask(&mut customer, secs(0)).is_admitted());
    // A place in an hour would be possible in the customer's own limit, but not in the shared one.
    let refused = ask(&mut customer, secs(3_600));
    assert_eq!(refused.retry_after(), Some(secs(3_600)));
    let refusing: Vec<_> = refused.statuses().map(|status| status.refused).collect();
    assert_eq!(refusing, [true, false]);
    for _ in 0..99 {
        assert!(ask(&mut own.fresh(), secs(0)).is_admitted());
    }
    assert!(!ask(&mut own.fresh(), secs(0)).is_admitted());
}

/// If a request waited for an hour in one limit, the other could not be counted exactly. A client that comes back
/// after `retry_after` is admitted, and one tick earlier it is refused, however large the numbers are.
#[test]
fn a_place_too_far_ahead_to_be_counted_is_told_when_it_is_near_enough() {
    let bucket = Limit::per(437_303, Duration::from_millis(250)).burst(4);
    let limits = [bucket, Limit::leaky_bucket(3, secs(86_400)).queue(2)];
    let mut states = limits.each_ref().map(Limit::fresh);
    assert_eq!(both(&limits, &mut states, NOW, secs(0)), Some(0));
    let ask = |now: u64| {
        let mut states = states.clone();
        let attempts = limits.iter().zip(&mut states);
        let attempts = attempts.map(|(limit, state)| Attempt { limit, state, cost: 1 });
        decide(&mut attempts.collect::<Vec<_>>(), now, None, Keys::One)
    };
    let retry = ask(NOW).retry_after().expect("time makes room");
    // What drains until it leaves stays below 2^53, without the bucket and one cost.
    let (unit, drain) = (250_000_u128, 437_303_u128);
    let room = (1_u128 << 53) - 4 * unit - unit;
    let latest = (room - 1) / drain;
    assert_eq!(retry.as_micros(), 28_800_000_000 - latest);
    assert_eq!(retry.as_secs(), 8_202);
    let then = NOW + retry.as_micros() as u64;
    assert!(!ask(then - 1).is_admitted());
    assert!(ask(then).is_admitted());
}

/// What drains until its turn stays booked, and no longer: giving back mints no credit.
#[test]
fn who_leaves_before_its_turn_gives_a_shared_bucket_its_cost_back_and_no_more() {
    let limits = [Limit::per_second(2).burst(1), Limit::per_second(10)];
    let mut states = limits.each_ref().map(Limit::fresh);
    let mut ask = || {
        let attempts = limits.iter().zip(&mut states);
        let attempts = attempts.map(|(limit, state)| Attempt { limit, state, cost: 1 });
        decide(&mut attempts.collect::<Vec<_>>(), NOW, Some(secs(1)), Keys::Several)
    };
    assert_eq!(ask().wait(), secs(0));
    let waiting = ask();
    assert_eq!(waiting.wait(), Duration::from_millis(500));
    let shared = waiting.statuses().nth(1).expect("two limits");
    limits[1].settle(&mut states[1], NOW, &shared.receipt, 1, 0);
    assert_eq!(limits[1].fresh_in(&states[1], NOW), Some(Duration::from_millis(500)));
    assert_eq!(limits[1].fresh_in(&states[1], NOW + SECOND / 2), Some(secs(0)));
}

/// Each of them would wait for less than half of the shared bucket behind the debt of those before it.
#[test]
fn many_who_wait_in_a_queue_of_their_own_do_not_shut_a_bucket_that_others_share() {
    let own = Limit::per_second(2).burst(1);
    let leaky = Limit::leaky_bucket(3, secs(1)).queue(20);
    let shareds = [
        Limit::per_second(10),
        Limit::per_second(10).refill(1, Duration::from_millis(100)),
        Limit::per_second(10).min_gap(Duration::from_millis(100)),
    ];
    for (own, shared) in
        [own, leaky].into_iter().flat_map(|own| shareds.map(|shared| (own, shared)))
    {
        let (mut one, mut all) = (own.fresh(), shared.fresh());
        let mut ask = |own_state: &mut State, patience| {
            let mut attempts = [
                Attempt { limit: &own, state: own_state, cost: 1 },
                Attempt { limit: &shared, state: &mut all, cost: 1 },
            ];
            decide(&mut attempts, NOW, patience, Keys::Several)
        };
        let admitted = (0..20).filter(|_| ask(&mut one, Some(secs(10))).is_admitted()).count();
        assert!(admitted > 0, "{own} beside {shared}");
        let newcomer = ask(&mut own.fresh(), Some(secs(10)));
        assert!(newcomer.is_admitted(), "{own} beside {shared}: {newcomer:?}");
        let most = Duration::from_millis(if shared.gap > 0 { 150 } else { 0 });
        assert!(newcomer.wait() <= most, "{own} beside {shared}: {newcomer:?}");
    }
}

/// Entries of requests that wait count until a period after their places.
#[test]
fn those_who_wait_in_a_queue_of_their_own_do_not_fill_a_log_that_others_share() {
    let shared = Limit::sliding_log(10, secs(1));
    for own in [Limit::per_second(2).burst(1), Limit::leaky_bucket(3, secs(1)).queue(20)] {
        let (mut one, mut all) = (own.fresh(), shared.fresh());
        let mut ask = |own_state: &mut State| {
            let mut attempts = [
                Attempt { limit: &own, state: own_state, cost: 1 },
                Attempt { limit: &shared, state: &mut all, cost: 1 },
            ];
            decide(&mut attempts, NOW, Some(secs(10)), Keys::Several)
        };
        let admitted: Vec<_> = (0..20).map(|_| ask(&mut one)).collect();
        let waits = admitted.iter().filter(|one| one.is_admitted()).map(Decision::wait);
        let longest = waits.max().expect("some are admitted");
        assert!(longest > secs(0) && longest <= secs(1) / 2, "{own}: {longest:?}");
        for _ in 0..8 {
            let newcomer = ask(&mut own.fresh());
            assert!(newcomer.is_admitted() && newcomer.wait().is_zero(), "{own}: {newcomer:?}");
        }
    }
}
