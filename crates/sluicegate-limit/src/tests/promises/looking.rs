//! A peek changes nothing, and answers what a take would.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::{Attempt, Keys, Limit, State, Verdict, decide, preview};
use super::super::strategies::{changes, limit, small_limit, turn};
use super::super::{NOW, micros};

fn attempts<'a>(limits: &'a [Limit], states: &'a mut [State], cost: u64) -> Vec<Attempt<'a>> {
    limits.iter().zip(states).map(|(limit, state)| Attempt { limit, state, cost }).collect()
}

/// The verdicts of a peek and of the take after it. A peek that changes the state is an error.
fn look_and_take(
    limits: &[Limit],
    states: &mut [State],
    (cost, now): (u64, u64),
    patience: Option<Duration>,
    keys: Keys,
) -> [Verdict; 2] {
    let before = states.to_vec();
    let looked = preview(&mut attempts(limits, states, cost), now, patience, keys);
    assert_eq!(before, states, "{limits:?}");
    let taken = decide(&mut attempts(limits, states, cost), now, patience, keys);
    let both = [&looked, &taken];
    if !taken.is_admitted() && !records(limits) {
        // Nothing was charged, so all of it is reported alike.
        let told = both.map(|outcome| outcome.decision(limits.iter().map(|limit| (limit, cost))));
        assert_eq!(told[0], told[1]);
    }
    both.map(|outcome| outcome.verdict())
}

/// Whether a refusal is recorded and so delays the moment of admission.
fn records(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| limit.ban > 0 || limit.count_refused)
}

fn assert_alike(limits: &[Limit], [looked, taken]: [Verdict; 2]) {
    if records(limits) && !taken.is_admitted() && !taken.never_fits() {
        assert!(!looked.is_admitted() && !looked.never_fits());
        if let (Some(looked), Some(taken)) = (looked.retry_after(), taken.retry_after()) {
            assert!(looked <= taken, "{limits:?}");
        }
    } else {
        assert_eq!(looked, taken, "{limits:?}");
    }
}

/// How far the clock is moved forward or back.
fn step(limit: &Limit, turned: super::super::strategies::Turn, back: Option<u64>, now: u64) -> u64 {
    match back {
        Some(back) => now - back,
        None => now + turned.micros(limit, None),
    }
}

proptest! {
    #![proptest_config(crate::tests::cases(125))]

    #[test]
    fn a_look_tells_what_taking_would_with_any_patience_and_any_limits(
        limits in prop::collection::vec(prop_oneof![limit(), small_limit()], 1..4),
        calls in prop::collection::vec(
            (turn(), prop::option::weighted(0.1, 0_u64..2_000), 0_u64..9, prop::option::of(turn())),
            1..30,
        ),
        several in any::<bool>(),
    ) {
        let keys = if several { Keys::Several } else { Keys::One };
        let mut states: Vec<_> = limits.iter().map(Limit::fresh).collect();
        let mut now = NOW;
        for (turned, back, cost, patience) in calls {
            now = step(&limits[0], turned, back, now);
            let patience = patience.map(|patience| micros(patience.micros(&limits[0], None)));
            let both = look_and_take(&limits, &mut states, (cost, now), patience, keys);
            assert_alike(&limits, both);
        }
    }

    #[test]
    fn a_look_at_what_other_numbers_have_written_tells_what_taking_would(
        limits in changes(),
        calls in prop::collection::vec(
            (0_usize..4, turn(), 0_u64..9, prop::option::of(turn())), 1..30,
        ),
    ) {
        let mut state = limits[0].fresh();
        let mut now = NOW;
        for (which, turned, cost, patience) in calls {
            let limit = &limits[which % limits.len()..][..1];
            now += turned.micros(&limit[0], None);
            let patience = patience.map(|patience| micros(patience.micros(&limit[0], None)));
            let states = std::slice::from_mut(&mut state);
            let both = look_and_take(limit, states, (cost, now), patience, Keys::One);
            assert_alike(limit, both);
        }
    }
}
