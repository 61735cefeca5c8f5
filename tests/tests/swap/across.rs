//! Charges with more rows than the engine swaps at once.

use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::Swap;
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::engine::MadeUp;
use crate::store::{by_hand, left, open, settled};

const SECOND: Duration = Duration::from_secs(1);
const QUEUE: Limit = Limit::leaky_bucket(1, SECOND).queue(10);
const PLAIN: Limit = Limit::per_minute(100);

fn store() -> Swap<MadeUp> {
    let clock = ManualClock::new();
    open(by_hand(MadeUp::new(&clock).rows_at_once(1), &clock))
}

/// It leaves the queue after four seconds at the earliest.
fn charge() -> Charge {
    let mut charge = Charge::of(QUEUE, key("alice"), 5);
    charge.add(PLAIN, key("alice"), 5).expect("two limits");
    charge
}

#[test]
fn what_never_fits_into_its_patience_is_not_admitted_across_swaps() {
    let store = store();
    for charge in [charge(), charge().patient(SECOND), charge().patient(10 * SECOND)] {
        let outcome = answer(store.take(&charge)).expect("an answer");
        // Such a charge does not wait, so it can never be admitted, whatever it would wait for.
        assert!(outcome.never_fits(), "{outcome:?}");
    }
    assert_eq!((left(&store, QUEUE, "alice"), left(&store, PLAIN, "alice")), (11, 100));
}

#[test]
fn what_never_fits_is_forgotten_across_swaps_all_the_same() {
    let store = store();
    let spent = Charge::of(PLAIN, key("alice"), 40);
    assert!(answer(store.take(&spent)).expect("an answer").is_admitted());
    let _ = answer(store.reset(&charge().patient(SECOND))).expect("an answer");
    assert_eq!(left(&store, PLAIN, "alice"), 100);
}

/// The decision keeps its place in the background until its parts are given back.
#[test]
fn parts_are_given_back_although_the_background_has_room_for_one() {
    let limits = [Limit::per_minute(3), Limit::per_hour(3), Limit::per_day(3)];
    // The part that refuses is the first, the second and the third one.
    for full in limits {
        let clock = ManualClock::new();
        let builder = by_hand(MadeUp::new(&clock).rows_at_once(1), &clock);
        let store = open(builder.background(1, SECOND * 1_000_000));
        // The room of a call is free a moment after its answer.
        let take = |charge: &Charge| until("room", || answer(store.take(charge)).ok());
        assert!(take(&Charge::of(full, key("alice"), 3)).is_admitted());
        let mut charge = Charge::new();
        for limit in limits {
            charge.add(limit, key("alice"), 1).expect("three limits");
        }
        assert!(!take(&charge).is_admitted());
        settled(&store);
        let left = limits.map(|limit| {
            let charge = Charge::of(limit, key("alice"), 1);
            let peeked = until("room", || answer(store.peek(&charge)).ok());
            peeked.decision(&charge).remaining().expect("one limit")
        });
        assert_eq!(left, limits.map(|limit| if limit == full { 0 } else { 3 }));
        assert_eq!(store.counts().settlements_dropped, 0);
    }
}
