//! Places of concurrency limits, and the processes that hold them.

use std::time::Duration;

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::Swap;
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::engine::MadeUp;
use crate::store::{by_hand, left, open, settled};

const EIGHT: Limit = Limit::concurrent(8);
const LEASE: Duration = Duration::from_secs(10);
/// The time between two renewals.
const PAUSE: Duration = Duration::from_millis(2_500);

fn take(store: &Swap<MadeUp>, cost: u64) -> Outcome {
    answer(store.take(&charge(cost))).expect("the store answers")
}

fn charge(cost: u64) -> Charge {
    Charge::of(EIGHT, key("alice"), cost)
}

fn give_back(store: &Swap<MadeUp>, cost: u64, outcome: &Outcome) {
    let charge = charge(cost);
    let (debit, receipt) = (charge.debits().next(), outcome.receipts().next());
    store.settle(debit.expect("one"), &receipt.expect("one"), 0);
    settled(store);
}

fn store(engine: &MadeUp, clock: &ManualClock) -> Swap<MadeUp> {
    open(by_hand(engine.clone(), clock).concurrency_lease(LEASE))
}

#[test]
fn what_is_held_for_longer_than_the_lease_is_renewed() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let (holder, other) = (store(&engine, &clock), store(&engine, &clock));
    let held = take(&holder, 8);
    for _ in 0..12 {
        let before = engine.versions();
        until("the row to be renewed", || {
            clock.advance(PAUSE / 10);
            (engine.versions() != before).then_some(())
        });
        assert!(!take(&other, 1).is_admitted());
    }
    give_back(&holder, 8, &held);
    assert!(take(&other, 8).is_admitted());
    assert_eq!(holder.counts().places_lost, 0);
}

#[test]
fn a_lease_without_an_end_is_kept_at_any_time() {
    let clock = ManualClock::at(Duration::ZERO);
    let engine = MadeUp::new(&clock);
    let store = open(by_hand(engine, &clock).concurrency_lease(Duration::MAX));
    assert!(take(&store, 8).is_admitted());
    assert!(!take(&store, 1).is_admitted());
}

#[test]
fn a_holder_that_is_gone_renews_nothing() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let (gone, other) = (store(&engine, &clock), store(&engine, &clock));
    assert!(take(&gone, 8).is_admitted());
    drop(gone);
    assert!(!take(&other, 1).is_admitted());
    clock.advance(LEASE);
    assert!(take(&other, 8).is_admitted());
}

/// Its clock stands still, and so does its work in the background.
#[test]
fn a_process_that_was_stopped_gives_back_nothing_that_is_another_s() {
    let (stopped, running) = (ManualClock::new(), ManualClock::new());
    let engine = MadeUp::new(&running);
    let (one, other) = (store(&engine, &stopped), store(&engine, &running));
    let lost = take(&one, 5);
    running.advance(LEASE);
    let others = take(&other, 5);
    assert!(others.is_admitted());
    stopped.advance(LEASE);
    give_back(&one, 5, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 3);
    let own = take(&one, 3);
    assert!(own.is_admitted());
    give_back(&one, 5, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 0);
    give_back(&one, 3, &own);
    give_back(&other, 5, &others);
    assert_eq!(left(&other, EIGHT, "alice"), 8);
}
