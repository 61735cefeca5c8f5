//! No input is too large: nothing panics, nothing overflows, and every stored number is exact.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::algorithm::Algorithm;
use super::super::super::exact::EXACT;
use super::super::super::testing::decide;
use super::super::super::{Attempt, Limit, State};
use super::super::strategies::{limit, small_limit};
use super::super::{DAY, NOW, SECOND, micros};

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![0, 1, SECOND, NOW, EXACT - 2, EXACT - 1, EXACT, u64::MAX]),
        NOW..NOW + DAY,
        0..EXACT,
    ]
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0_u64..4,
        1 => prop::sample::select(vec![1 << 32, EXACT / 2, EXACT, u64::MAX - 1, u64::MAX]),
    ]
}

fn patience() -> impl Strategy<Value = Duration> {
    prop::sample::select(vec![Duration::ZERO, micros(1), micros(DAY), micros(EXACT), Duration::MAX])
}

/// Limits near the largest possible numbers, beside usual ones.
fn large() -> impl Strategy<Value = Limit> {
    let number = || prop_oneof![1_u64..10, (0_u32..52).prop_map(|bits| (1 << bits) + 1)];
    (0..8, number(), number(), number()).prop_filter_map(
        "too large",
        |(spec, count, period, more)| {
            let period = micros(period);
            let limit = match spec {
                0 => Limit::try_per(count, period),
                1 => Limit::try_per(count, period).and_then(|limit| limit.try_burst(more)),
                2 => Limit::try_per(1, period)
                    .and_then(|limit| limit.try_refill(count, micros(more))),
                3 => Limit::try_leaky_bucket(count, period).and_then(|limit| limit.try_queue(more)),
                4 => Limit::try_fixed_window(count, period),
                5 => Limit::try_fixed_window(count, period).and_then(Limit::try_from_first),
                6 => Limit::try_sliding_log(count, period).map(|limit| limit.ban(micros(more))),
                _ => Limit::try_sliding_window(count, period)
                    .map(|limit| limit.min_gap(micros(more))),
            };
            limit.ok()
        },
    )
}

fn assert_exact(limit: &Limit, state: &State) {
    let mut words = vec![state.gap[0], state.gap[1], state.ban[0], state.ban[1], state.words[0]];
    // The two counts of 32 bits are separated before they are used.
    if !matches!(limit.algorithm, Algorithm::SlidingWindow(_)) {
        words.push(state.words[1]);
    }
    assert!(words.iter().all(|word| *word < EXACT), "{limit}: {words:?}");
}

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn nothing_panics_whatever_comes(
        limits in prop::collection::vec(prop_oneof![limit(), small_limit(), large()], 1..4),
        calls in prop::collection::vec((moment(), cost(), patience(), cost()), 1..30),
        forwards in any::<bool>(),
    ) {
        let mut states: Vec<_> = limits.iter().map(Limit::fresh).collect();
        let mut calls = calls;
        if forwards {
            calls.sort_by_key(|(now, ..)| *now);
        }
        for (now, cost, patience, spent) in calls {
            let mut attempts: Vec<_> = limits.iter().zip(&mut states)
                .map(|(limit, state)| Attempt { limit, state, cost })
                .collect();
            let decision = decide(&mut attempts, now, Some(patience), crate::Keys::One);
            prop_assert!(decision.wait() <= patience.max(decision.wait().min(micros(EXACT))));
            for ((limit, state), status) in
                limits.iter().zip(&mut states).zip(decision.statuses())
            {
                prop_assert!(status.remaining <= limit.capacity());
                prop_assert!(status.retry.is_none_or(|retry| retry < micros(EXACT)));
                prop_assert!(status.reset.is_some_and(|reset| reset < micros(EXACT)), "{:?}", status);
                limit.peek(state, now, cost);
                assert_exact(limit, state);
                if decision.is_admitted() && spent != 1 {
                    limit.settle(state, now, &status.receipt, cost, spent);
                    assert_exact(limit, state);
                    limit.fresh_in(state, now.saturating_add(spent));
                }
            }
        }
    }

    /// However long requests wait, no two get the same place beyond the limit.
    #[test]
    fn endless_patience_books_no_place_twice(
        limit in large(),
        costs in prop::collection::vec(1_u64..5, 1..40),
    ) {
        let mut state = limit.fresh();
        let (mut last, mut at_once) = (Duration::ZERO, 0_u128);
        for share in costs {
            let cost = (limit.capacity() / share).max(1);
            let decision = limit.take_within(&mut state, NOW, cost, Duration::MAX);
            if decision.is_admitted() {
                prop_assert!(decision.wait() >= last);
                at_once = if decision.wait() == last { at_once } else { 0 } + u128::from(cost);
                last = decision.wait();
                let fast = u128::from(limit.count / limit.period.max(1));
                prop_assert!(at_once <= u128::from(limit.capacity()) + fast * SECOND as u128, "{}", limit);
            }
        }
    }
}
