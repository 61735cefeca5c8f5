//! In any interval, never more than the burst and the rate times the time.

use proptest::prelude::*;

use super::super::super::Limit;
use super::super::super::algorithm::Algorithm;
use super::super::strategies::{Turn, limit, small_limit, turn};
use super::Used;
use crate::limit::AlgorithmSpec;

/// When a request left, and what it cost.
type Left = (u64, u64);

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn no_interval_holds_more_than_the_limit(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9, patience()), 1..60),
    ) {
        let mut used = Used::new(limit);
        let mut left: Vec<Left> = Vec::new();
        for (turn, cost, patience) in turns {
            used.turn(turn);
            let cost = cost.min(limit.capacity());
            let patience = patience.micros(&limit, used.retry);
            let decision = used.take_within(cost, patience);
            if decision.is_admitted() {
                left.push((used.now + decision.wait().as_micros() as u64, cost));
            }
        }
        for (i, &(from, _)) in left.iter().enumerate() {
            for j in i..left.len() {
                check(&limit, from, left[j].0, &left[i..=j]);
            }
        }
        check_windows(&limit, &left);
        for pair in left.windows(2) {
            prop_assert!(pair[1].0 - pair[0].0 >= limit.gap, "{}: {:?}", limit, pair);
        }
    }
}

fn patience() -> impl Strategy<Value = Turn> {
    prop_oneof![Just(Turn::Micros(0)), turn()]
}

/// What left between two moments, both included.
fn check(limit: &Limit, from: u64, to: u64, left: &[Left]) {
    let sum: u128 = left.iter().map(|(_, cost)| u128::from(*cost)).sum();
    let (count, period) = (u128::from(limit.count), u128::from(limit.period));
    match (limit.spec, limit.algorithm) {
        (
            AlgorithmSpec::TokenBucket { .. } | AlgorithmSpec::LeakyBucket { .. },
            Algorithm::TokenBucket(bucket),
        ) => {
            let at_once = match limit.spec {
                AlgorithmSpec::LeakyBucket { delay_after, .. } => delay_after + 1,
                _ => limit.capacity(),
            };
            let largest = left.iter().map(|(_, cost)| *cost).max().unwrap_or(0).max(at_once);
            let tick = bucket.scale()[2];
            // A waiting request leaves at the first tick after it is due: one tick of rounding.
            let ticks = u128::from(to / tick - from / tick) + 1;
            let most = u128::from(largest) * period + ticks * u128::from(tick) * count;
            assert!(sum * period <= most, "{limit}: {sum} in {} µs", to - from);
        }
        (AlgorithmSpec::SteppedBucket { burst }, _) => {
            let steps = u128::from(to - from) / period + 1;
            assert!(sum <= u128::from(burst) + steps * count, "{limit}: {sum}");
        }
        (AlgorithmSpec::SlidingLog { .. }, _) if to - from < limit.period => {
            assert!(sum <= count, "{limit}: {sum} in {} µs", to - from);
        }
        // For windows that begin anywhere, an interval shorter than one touches at most two.
        (AlgorithmSpec::FixedWindow { .. }, _) if to - from < limit.period => {
            assert!(sum <= 2 * count, "{limit}: {sum}");
        }
        _ => {}
    }
}

/// What left in each window that is aligned to the epoch.
fn check_windows(limit: &Limit, left: &[Left]) {
    let in_window = |index: u64, until: usize| -> u128 {
        let inside = left[..=until].iter().filter(|(when, _)| when / limit.period == index);
        inside.map(|(_, cost)| u128::from(*cost)).sum()
    };
    for (i, &(when, _)) in left.iter().enumerate() {
        let (index, into) = (when / limit.period, when % limit.period);
        let current = in_window(index, i);
        match (limit.spec, limit.algorithm) {
            (AlgorithmSpec::FixedWindow { from_first: false }, _) => {
                assert!(current <= u128::from(limit.count), "{limit}");
            }
            (AlgorithmSpec::SlidingWindow, Algorithm::SlidingWindow(sliding)) => {
                // What is booked within a window counts from the booking on, so it weighs enough.
                let tick = sliding.tick();
                let overlap = u128::from((limit.period - into).div_ceil(tick) * tick);
                let previous = in_window(index - 1, i) * overlap / u128::from(limit.period);
                assert!(current + previous <= u128::from(limit.count), "{limit}");
            }
            _ => {}
        }
    }
}
