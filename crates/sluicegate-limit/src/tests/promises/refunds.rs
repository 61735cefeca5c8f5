//! Giving back never mints credit.

use proptest::prelude::*;

use super::super::super::{Limit, Receipt};
use super::super::strategies::{limit, small_limit, small_shape, turn};
use super::super::{NOW, admits, secs};
use super::{Used, answers};
use crate::limit::AlgorithmSpec;

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn what_is_taken_and_given_back_at_once_was_never_taken(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9), 0..40),
        cost in 1_u64..9,
        probes in prop::collection::vec((turn(), 1_u64..9), 1..20),
    ) {
        let mut used = Used::by(limit, &turns);
        let cost = cost.min(limit.capacity());
        let asked = limit.peek(&used.state, used.now, cost);
        used.now += asked.retry_after().map_or(0, |retry| retry.as_micros() as u64);
        let mut untouched = Used { state: used.state.clone(), ..used };
        let receipt = used.take_when_free(cost);
        prop_assert_eq!(used.now, untouched.now);
        if limit.queued(&untouched.state, used.now, cost).is_some_and(|wait| wait > 0) {
            return Ok(());
        }
        limit.settle(&mut used.state, used.now, &receipt, cost, 0);
        used.retry = untouched.retry;
        prop_assert_eq!(
            limit.fresh_in(&used.state, used.now),
            limit.fresh_in(&untouched.state, untouched.now)
        );
        for (turn, cost) in probes {
            used.turn(turn);
            untouched.turn(turn);
            prop_assert_eq!(
                answers(limit, &used.state, used.now),
                answers(limit, &untouched.state, untouched.now)
            );
            prop_assert_eq!(used.take(cost).verdict(), untouched.take(cost).verdict());
        }
    }

    /// Compared with a run in which the request cost from the beginning what it turned out to cost.
    #[test]
    fn a_refund_leaves_no_more_than_if_the_request_had_never_come(
        limit in small_shape(),
        before in prop::collection::vec((turn(), 1_u64..4), 0..20),
        (cost, spent) in (1_u64..6, 0_u64..6),
        after in prop::collection::vec((turn(), 1_u64..4), 0..20),
        probes in prop::collection::vec(turn(), 1..10),
    ) {
        // Without the first request, a step or a window that begins with it begins with another one.
        let phased = matches!(limit.spec, AlgorithmSpec::SteppedBucket { .. } | AlgorithmSpec::FixedWindow { from_first: true });
        if phased {
            return Ok(());
        }
        let mut used = Used::by(limit, &before);
        let cost = cost.min(limit.capacity());
        let spent = spent.min(cost);
        let mut without = Used { state: used.state.clone(), ..used };
        let receipt = used.take_when_free(cost);
        without.now = used.now;
        if spent > 0 {
            prop_assert!(without.take(spent).is_admitted());
        }
        for (turn, cost) in after {
            used.turn(turn);
            without.now = used.now;
            if used.take(cost).is_admitted() {
                prop_assert!(without.take(cost).is_admitted());
            }
        }
        limit.settle(&mut used.state, used.now, &receipt, cost, spent);
        for turn in probes {
            used.turn(turn);
            let refunded = answers(limit, &used.state, used.now);
            let never = answers(limit, &without.state, used.now);
            for ((admits, remaining, retry), never) in refunded.into_iter().zip(never) {
                prop_assert!(!admits || never.0, "{}", limit);
                prop_assert!(remaining <= never.1, "{}: {:?} of {:?}", limit, remaining, never.1);
                prop_assert!(admits || never.0 || retry >= never.2, "{}", limit);
            }
        }
    }

    #[test]
    fn no_refund_makes_a_key_better_than_fresh(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9, 0_u64..1_000, 0_usize..6, 0_u64..3), 1..40),
    ) {
        let mut used = Used::new(limit);
        let mut open: Vec<(Receipt, u64)> = Vec::new();
        for (turn, cost, patience, which, spent) in turns {
            used.turn(turn);
            let cost = cost.min(limit.capacity());
            let decision = used.take_within(cost, patience);
            if decision.is_admitted() {
                open.push((decision.statuses().next().expect("one limit").receipt, cost));
            }
            if which < open.len() {
                let (receipt, cost) = open.swap_remove(which);
                let before = limit.peek(&used.state, used.now, 1).remaining();
                limit.settle(&mut used.state, used.now, &receipt, cost, spent.min(cost));
                let after = limit.peek(&used.state, used.now, 1).remaining();
                let most = before.map(|before| before.saturating_add(cost).min(limit.capacity()));
                // Giving back may also lift a ban or a gap. Then the state before it shows again.
                let lifted = (limit.ban > 0 || limit.gap > 0) && before == Some(0);
                prop_assert!(before <= after && (lifted || after <= most));
                prop_assert!(after <= Some(limit.capacity()));
            }
        }
    }

    #[test]
    fn giving_back_to_a_forgotten_key_does_nothing(
        limit in prop_oneof![limit(), small_limit()],
        turns in prop::collection::vec((turn(), 1_u64..9), 0..20),
        cost in 1_u64..9,
    ) {
        let mut used = Used::by(limit, &turns);
        let cost = cost.min(limit.capacity());
        let receipt = used.take_when_free(cost);
        let mut forgotten = limit.fresh();
        limit.settle(&mut forgotten, used.now, &receipt, cost, 0);
        let fresh = answers(limit, &limit.fresh(), used.now);
        prop_assert_eq!(answers(limit, &forgotten, used.now), fresh);
    }

    #[test]
    fn what_is_charged_afterwards_is_owed(
        limit in small_limit(),
        turns in prop::collection::vec((turn(), 1_u64..5), 0..20),
        more in 1_u64..50,
    ) {
        let mut used = Used::by(limit, &turns);
        let receipt = used.take_when_free(1);
        let left = limit.peek(&used.state, used.now, 1).remaining().expect("one limit");
        limit.settle(&mut used.state, used.now, &receipt, 1, 1 + more);
        let after = limit.peek(&used.state, used.now, 1);
        prop_assert_eq!(after.remaining(), Some(left.saturating_sub(more)));
        let mut late = Used { now: used.now, ..used };
        if let Some(retry) = late.take(1).retry_after() {
            late.now += retry.as_micros() as u64;
            prop_assert!(late.take(1).is_admitted());
        }
    }
}

fn mark_of(limit: Limit, used: &mut Used) -> Receipt {
    used.limit = limit;
    used.take(1).statuses().next().expect("one limit").receipt
}

#[test]
fn a_gap_is_given_back_with_the_request_that_never_came() {
    let limit = Limit::per_minute(60).min_gap(secs(10));
    let mut used = Used::new(limit);
    let receipt = mark_of(limit, &mut used);
    assert!(!admits(limit, &mut used.state, NOW));
    limit.settle(&mut used.state, NOW, &receipt, 1, 0);
    assert!(admits(limit, &mut used.state, NOW));
}
