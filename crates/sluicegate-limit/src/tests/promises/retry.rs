//! Refused until, admitted at.

use proptest::prelude::*;

use super::super::super::testing::decide;
use super::super::super::{Attempt, Decision, Limit, State};
use super::super::strategies::{limit, small_limit, turn};
use super::super::{NOW, micros};
use super::{Used, answers};
use crate::limit::AlgorithmSpec;

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn a_client_that_waits_retry_after_is_admitted_and_one_tick_earlier_is_not(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9), 1..40),
    ) {
        let mut used = Used::new(limit);
        for (turn, cost) in turns {
            used.turn(turn);
            let cost = cost.min(limit.capacity());
            let decision = used.take(cost);
            if decision.is_admitted() {
                prop_assert_eq!(decision.retry_after(), None);
                continue;
            }
            let retry = used.retry.expect("time makes room").as_micros() as u64;
            prop_assert!(retry > 0);
            let then = |wait: u64| limit.take(&mut used.state.clone(), used.now + wait, cost);
            prop_assert!(!then(retry - 1).is_admitted(), "{}: one tick before {}", limit, retry);
            prop_assert!(then(retry).is_admitted(), "{}: after {}", limit, retry);
        }
    }

    #[test]
    fn the_same_holds_for_several_limits_at_once(
        limits in prop::collection::vec(small_limit(), 1..5),
        turns in prop::collection::vec((turn(), 1_u64..4), 1..30),
    ) {
        let mut states: Vec<_> = limits.iter().map(Limit::fresh).collect();
        let (mut now, mut retry) = (NOW, None);
        let most = limits.iter().map(Limit::capacity).min().expect("one limit or more");
        for (turn, cost) in turns {
            now += turn.micros(&limits[0], retry);
            let cost = cost.min(most);
            let before = states.clone();
            let decision = take_all(&limits, &mut states, now, cost);
            retry = decision.retry_after();
            if decision.is_admitted() {
                prop_assert!(decision.statuses().all(|status| !status.refused));
                continue;
            }
            prop_assert!(decision.statuses().any(|status| status.refused));
            // All or none: a limit that did not refuse, or does not record it, is unchanged.
            for ((limit, status), (before, after)) in
                limits.iter().zip(decision.statuses()).zip(before.iter().zip(&states))
            {
                if !status.refused || limit.ban == 0 && !limit.count_refused {
                    prop_assert_eq!(answers(*limit, before, now), answers(*limit, after, now));
                }
            }
            let Some(retry) = retry else {
                // A queue may always reach beyond what another limit can book.
                let queue = |limit: &Limit| matches!(limit.spec, AlgorithmSpec::LeakyBucket { .. });
                let counter = |limit: &Limit| limit.spec == AlgorithmSpec::SlidingWindow;
                prop_assert!(limits.iter().any(queue) && limits.iter().any(counter));
                continue;
            };
            let retry = retry.as_micros() as u64;
            prop_assert!(retry > 0);
            let then = |wait: u64| take_all(&limits, &mut states.clone(), now + wait, cost);
            prop_assert!(!then(retry - 1).is_admitted(), "one tick before {}", retry);
            prop_assert!(then(retry).is_admitted(), "after {}", retry);
        }
    }

    /// The announced window holds: until it ends no more than the rest, and more afterwards.
    #[test]
    fn no_more_than_what_remains_is_to_be_had_within_the_window(
        limit in small_limit(),
        turns in prop::collection::vec((turn(), 1_u64..4), 1..30),
    ) {
        let used = Used::by(limit, &turns);
        let peek = limit.peek(&used.state, used.now, 1);
        let status = peek.statuses().next().expect("one limit");
        let window = status.window.expect("time makes room").as_micros() as u64;
        if status.remaining == limit.capacity() {
            return Ok(());
        }
        let more = status.remaining + 1;
        prop_assert!(window > 0);
        let then = |wait: u64| limit.peek(&used.state, used.now + wait, more).is_admitted();
        prop_assert!(!then(window - 1));
        prop_assert!(then(window));
    }

    #[test]
    fn a_state_that_has_recovered_answers_as_a_fresh_one(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9, 0_u64..1_000), 1..30),
        probes in prop::collection::vec((turn(), 1_u64..9), 1..20),
    ) {
        let mut used = Used::new(limit);
        for (turn, cost, patience) in turns {
            used.turn(turn);
            used.take_within(cost, patience);
        }
        let fresh_in = limit.fresh_in(&used.state, used.now).expect("time makes it fresh");
        used.now += fresh_in.as_micros() as u64;
        used.retry = None;
        let mut fresh = Used { state: limit.fresh(), now: used.now, ..Used::new(limit) };
        prop_assert_eq!(limit.fresh_in(&used.state, used.now), Some(micros(0)));
        for (turn, cost) in probes {
            let (used, fresh) = (
                { used.turn(turn); used.take(cost) },
                { fresh.turn(turn); fresh.take(cost) },
            );
            prop_assert_eq!(used.verdict(), fresh.verdict());
            prop_assert_eq!(used.remaining(), fresh.remaining());
        }
    }
}

fn take_all(limits: &[Limit], states: &mut [State], now: u64, cost: u64) -> Decision {
    let attempts = limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost });
    decide(&mut attempts.collect::<Vec<_>>(), now, None, crate::Keys::One)
}
