//! The quick step of a limit that is carried over, beside the one that looks at everything.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::super::testing::decide;
use super::super::{Attempt, Keys, Limit, Receipt, State};
use super::strategies::{Turn, changes, turn};
use super::{NOW, SECOND};
use crate::Outcome;
use crate::internal::LimitInternals as _;

/// What is done next: by which numbers, how much later, at which cost; and what is given back of it afterwards.
type Turns = Vec<(usize, Turn, u64, Option<u64>)>;

/// How often the quick step decided, and how often there was more to look at.
#[derive(Debug, Default)]
struct Decided {
    quickly: Cell<u32>,
    at_length: Cell<u32>,
}

fn turns() -> impl Strategy<Value = Turns> {
    // Mostly the same numbers, as it is in practice.
    let numbers = prop_oneof![4 => Just(0_usize), 1 => 0_usize..5];
    let cost = prop_oneof![4 => Just(1), 2 => 0_u64..4, 1 => Just(u64::MAX)];
    let back = prop::option::weighted(0.2, 0_u64..4);
    prop::collection::vec((numbers, turn(), cost, back), 1..60)
}

fn run(limits: &[Limit], turns: &Turns, decided: &Decided) -> Result<(), TestCaseError> {
    let (mut state, mut now, mut retry) = (State::default(), NOW, None);
    for (number, turn, cost, back) in turns {
        let limit = limits[number % limits.len()];
        now += turn.micros(&limit, retry);
        // A clock that steps back, now and then.
        let at = if *cost == 3 { now - SECOND } else { now };
        let mut long = state.clone();
        let attempts = &mut [Attempt { limit: &limit, state: &mut long, cost: *cost }];
        let expected = decide(attempts, at, None, Keys::One);
        let quick = match limit.carried_words {
            true => limit.step_account(&mut state, at, *cost),
            false => None,
        };
        let Some((step, fresh_in)) = quick else {
            decided.at_length.set(decided.at_length.get() + 1);
            (state, retry) = (long, expected.retry_after());
            continue;
        };
        decided.quickly.set(decided.quickly.get() + 1);
        let outcome = Outcome::from(step);
        prop_assert_eq!(outcome.decision([(&limit, *cost)]), expected.clone());
        prop_assert_eq!(&state, &long, "{} at {}, cost {}", limit, at, cost);
        prop_assert_eq!(step.is_admitted(), expected.is_admitted());
        if step.is_admitted() {
            prop_assert_eq!(fresh_in, limit.fresh_in_micros(&state, at));
        }
        let receipts: Vec<Receipt> = outcome.receipts().collect();
        let expected_receipts: Vec<_> = expected.statuses().map(|status| status.receipt).collect();
        prop_assert_eq!(&receipts, &expected_receipts);
        if let (Some(back), true) = (back, expected.is_admitted()) {
            limit.settle(&mut state, at, &receipts[0], *cost, *back);
        }
        retry = expected.retry_after();
    }
    Ok(())
}

#[test]
fn the_quick_step_of_an_only_account_is_the_one_that_looks_at_everything() {
    let decided = Decided::default();
    let mut runner = TestRunner::new(crate::tests::cases(500));
    let result =
        runner.run(&(changes(), turns()), |(limits, turns)| run(&limits, &turns, &decided));
    result.unwrap_or_else(|error| panic!("{error}"));
    // Both were tried.
    let Decided { quickly, at_length } = &decided;
    assert!(quickly.get() > 1_000 && at_length.get() > 1_000, "{decided:?}");
}

#[test]
fn a_row_with_more_to_look_at_is_not_decided_quickly() {
    let limit = Limit::per_minute(10).named("plan").carried();
    let mut own = State::default();
    assert!(limit.take(&mut own, NOW, 1).is_admitted());
    let is_quick = |change: fn(&mut State)| {
        let mut state = own.clone();
        change(&mut state);
        limit.step_account(&mut state, NOW, 1).is_some()
    };
    assert!(is_quick(|_| {}));
    let more: [fn(&mut State); 9] = [
        |state| state.ban = [NOW, 1],
        |state| state.gap = [NOW, 1],
        |state| state.strikes = [NOW, 1],
        |state| state.refused = 1,
        |state| state.written.parameters[3] += 1,
        |state| state.written.since = NOW + 1,
        |state| state.words[0] = NOW + 1,
        |state| state.others.get_or_insert_default().shut = [NOW, 1],
        |state| state.others.get_or_insert_default().accounts.push(Default::default()),
    ];
    for (at, change) in more.into_iter().enumerate() {
        assert!(!is_quick(change), "{at}");
    }
}
