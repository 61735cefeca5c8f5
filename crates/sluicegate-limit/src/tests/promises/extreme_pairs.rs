//! Refused until, admitted at: for pairs of limits near the largest possible numbers, one of which has a queue. A
//! model in wide integers says when a place can be booked.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::testing::decide;
use super::super::super::{Attempt, Decision, Keys, Limit, State};
use super::super::{DAY, NOW, micros};

/// Half of them small, half anywhere up to `most` in size.
fn number(most: u32) -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..10, (0..most, 0_u64..1_000).prop_map(|(bits, more)| (1 << bits) + more)]
}

/// A limit in which a place is booked for a request that another limit holds back.
fn beside() -> impl Strategy<Value = Limit> {
    let periods = prop_oneof![number(42), Just(250_000), Just(DAY), 1..3 * DAY];
    (0..5, number(40), periods, number(30)).prop_filter_map(
        "too large",
        |(spec, count, period, burst)| {
            let period = micros(period);
            let limit = match spec {
                0 => Limit::try_per(count, period).and_then(|limit| limit.try_burst(burst)),
                1 => {
                    Limit::try_per(burst, period).and_then(|limit| limit.try_refill(count, period))
                }
                2 => Limit::try_fixed_window(count, period),
                3 => Limit::try_fixed_window(count, period).and_then(Limit::try_from_first),
                _ => Limit::try_sliding_window(count, period),
            };
            limit.ok()
        },
    )
}

fn queue() -> impl Strategy<Value = Limit> {
    let periods = prop_oneof![number(45), Just(DAY), 1..300 * DAY];
    (1_u64..6, periods, 1_u64..6).prop_filter_map("too large", |(count, period, queue)| {
        Limit::try_leaky_bucket(count, micros(period)).ok()?.try_queue(queue).ok()
    })
}

fn take(limits: &[Limit], states: &mut [State], now: u64, keys: Keys) -> Decision {
    let attempts =
        limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost: 1 });
    decide(&mut attempts.collect::<Vec<_>>(), now, None, keys)
}

/// The earliest moment at which a request that leaves at `leaves` can book a place in a fresh bucket. What drains
/// until then, a cost and the bucket have to stay below 2^53. Beside a limit on another key, it keeps at most half of
/// the bucket. All numbers are wide, and the moment is found by bisection.
fn booked_at(limit: &Limit, now: u64, leaves: u64, keys: Keys) -> Option<u64> {
    let [unit, drain, tick] = match limit.algorithm {
        super::super::super::algorithm::Algorithm::TokenBucket(bucket) => {
            bucket.scale().map(u128::from)
        }
        _ => return None,
    };
    let cap = u128::from(limit.capacity()) * unit;
    let is_booked = |then: u64| {
        let ticks = u128::from(leaves) / tick - u128::from(then) / tick;
        let kept = ticks * drain;
        let is_shared = keys == Keys::Several && then < leaves;
        (!is_shared || kept <= cap / 2) && kept + unit + cap < 1 << 53
    };
    let (mut from, mut to) = (now, leaves);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_booked(middle) { to = middle } else { from = middle + 1 }
    }
    Some(from)
}

proptest! {
    #![proptest_config(crate::tests::cases(375))]

    #[test]
    fn a_client_that_waits_retry_after_is_admitted_beside_any_limit_and_one_tick_earlier_is_not(
        beside in beside(),
        queue in queue(),
        is_shared in any::<bool>(),
        start in NOW..NOW + DAY,
        later in prop::collection::vec(number(40), 1..6),
    ) {
        let limits = [beside, queue];
        let keys = if is_shared { Keys::Several } else { Keys::One };
        let mut states = limits.each_ref().map(Limit::fresh);
        let mut now = start;
        for more in later {
            let before = states.clone();
            let decision = take(&limits, &mut states, now, keys);
            if let Some(retry) = decision.retry_after().map(|retry| retry.as_micros() as u64) {
                let then = |wait: u64| take(&limits, &mut before.clone(), now + wait, keys);
                prop_assert!(retry > 0);
                prop_assert!(then(retry).is_admitted(), "{:?} after {}", limits, retry);
                prop_assert!(!then(retry - 1).is_admitted(), "{:?} before {}", limits, retry);
            } else {
                prop_assert!(decision.is_admitted(), "{:?}: {:?}", limits, decision);
            }
            now += more;
        }
    }

    #[test]
    fn a_place_in_a_bucket_is_booked_as_soon_as_wide_integers_say(
        beside in beside(),
        queue in queue(),
        is_shared in any::<bool>(),
        start in NOW..NOW + DAY,
    ) {
        let keys = if is_shared { Keys::Several } else { Keys::One };
        // Another request has just left, and the other limit has nothing spent.
        let (mut waiting, mut fresh) = (queue.fresh(), beside.fresh());
        prop_assert!(queue.take(&mut waiting, start, 1).is_admitted());
        let leaves = start + queue.peek(&waiting, start, 1).wait().as_micros() as u64;
        let Some(expected) = booked_at(&beside, start, leaves, keys) else { return Ok(()) };
        let mut attempts = [
            Attempt { limit: &beside, state: &mut fresh, cost: 1 },
            Attempt { limit: &queue, state: &mut waiting, cost: 1 },
        ];
        let decision = decide(&mut attempts, start, None, keys);
        prop_assert_eq!(decision.is_admitted(), expected == start);
        if !decision.is_admitted() {
            let retry = decision.retry_after();
            prop_assert_eq!(retry, Some(Duration::from_micros(expected - start)));
        }
    }
}
