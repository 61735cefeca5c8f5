use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::key::KeyBuf;
use crate::store::fallback::Fallback;
use crate::store::memory::Memory;

const MINUTE: Duration = Duration::from_secs(60);

fn quarter() -> Share<Memory> {
    Share::new(Memory::builder().clock(ManualClock::new()).build(), 1, 4)
}

fn now<F>(answer: Answer<F>) -> Outcome {
    match answer {
        Answer::Now(outcome) => outcome.expect("a decision"),
        Answer::Later(_) => panic!("it is in this process"),
    }
}

fn charge(limit: Limit, cost: u64) -> Charge {
    Charge::of(limit, KeyBuf::of("alice"), cost)
}

/// A limit of every shape, each admitting 8 at once.
fn eight() -> [Limit; 8] {
    [
        Limit::per_minute(8),
        Limit::per_minute(60).burst(8),
        Limit::per_minute(8).refill(8, MINUTE),
        Limit::leaky_bucket(8, MINUTE).queue(7).delay_after(7),
        Limit::fixed_window(8, MINUTE),
        Limit::sliding_log(8, MINUTE),
        Limit::sliding_window(8, MINUTE),
        Limit::concurrent(8),
    ]
}

fn admitted(store: &Share<Memory>, limit: Limit) -> usize {
    (0..20).filter(|_| now(store.take(&charge(limit, 1))).is_admitted()).count()
}

#[test]
fn a_quarter_of_every_limit_is_admitted() {
    for limit in eight() {
        assert_eq!(admitted(&quarter(), limit), 2, "{limit}");
    }
}

#[test]
fn a_share_is_rounded_down_and_at_least_one() {
    for (count, expected) in [(1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (11, 2)] {
        assert_eq!(admitted(&quarter(), Limit::per_minute(count)), expected, "{count}");
    }
}

#[test]
fn the_whole_is_a_share() {
    let store = Share::new(Memory::builder().clock(ManualClock::new()).build(), 3, 3);
    for limit in eight() {
        assert_eq!(admitted(&store, limit), 8, "{limit}");
    }
}

#[test]
fn what_is_told_is_the_limit_s_name_and_the_part_s_rest() {
    let limit = Limit::per_minute(100).named("api");
    let charge = charge(limit, 5);
    let decision = now(quarter().take(&charge)).decision(&charge);
    let status = decision.statuses().next().expect("one");
    assert_eq!(status.limit, limit);
    assert_eq!((status.remaining, status.charged), (20, 5));
}

#[test]
fn a_cost_above_the_share_is_refused_for_good() {
    for limit in eight() {
        let outcome = now(quarter().take(&charge(limit, 3)));
        assert!(!outcome.is_admitted(), "{limit}");
        assert_eq!(outcome.retry_after(), None, "{limit}");
    }
}

#[test]
fn limits_that_have_the_same_share_stay_apart() {
    let mut charge = Charge::new();
    for count in [4, 5] {
        charge.add(Limit::per_minute(count), KeyBuf::of("alice"), 1).expect("room");
    }
    let store = quarter();
    let outcome = now(store.take(&charge));
    assert!(outcome.is_admitted());
    assert_eq!(outcome.decision(&charge).statuses().count(), 2);
    assert!(!now(store.take(&charge)).is_admitted());
}

#[test]
fn what_is_given_back_reaches_the_share() {
    for limit in eight() {
        let (store, charge) = (Fallback(quarter(), quarter()), charge(limit, 2));
        let outcome = now(store.take(&charge));
        let receipt = outcome.receipts().next().expect("one");
        assert!(!now(store.take(&charge)).is_admitted(), "{limit}");
        store.settle(charge.debits().next().expect("one"), &receipt, 0);
        assert!(now(store.take(&charge)).is_admitted(), "{limit}");
    }
}

#[test]
fn patience_goes_on_to_the_share() {
    let store = quarter();
    let charge = charge(Limit::per_minute(4), 1).patient(MINUTE);
    assert_eq!(now(store.take(&charge)).wait(), Duration::ZERO);
    assert_eq!(now(store.take(&charge)).wait(), MINUTE);
}

#[test]
fn a_soft_limit_is_shared_too() {
    let store = quarter();
    let charge = charge(Limit::per_minute(16).soft(8), 1);
    let soft: Vec<_> = (0..4)
        .map(|_| now(store.take(&charge)).decision(&charge).statuses().next().expect("one").soft)
        .collect();
    assert_eq!(soft, [false, false, true, true]);
}

#[test]
fn a_share_is_not_nothing_and_not_more_than_all() {
    for (parts, of) in [(0, 4), (5, 4), (0, 0)] {
        assert!(std::panic::catch_unwind(|| Share::new(Memory::new(), parts, of)).is_err());
    }
}

#[test]
fn what_was_spent_of_a_part_is_carried_over_and_a_shadow_of_it_tells_what_it_would_refuse() {
    let store = quarter();
    let [free, paid] = [8, 80].map(|count| Limit::per_minute(count).named("plan").carried());
    assert!(now(store.take(&charge(free, 1))).is_admitted());
    let paid = charge(paid, 1);
    assert_eq!(now(store.take(&paid)).decision(&paid).remaining(), Some(18));
    assert!(!now(store.take(&charge(free, 1))).is_admitted());

    let trial = charge(Limit::per_minute(4).shadow(), 1);
    let told = [(); 2].map(|()| now(store.take(&trial)));
    assert_eq!(told.each_ref().map(Outcome::is_admitted), [true, true]);
    assert_eq!(told.each_ref().map(Outcome::is_shadowed), [false, true]);
    let receipt = told[1].receipts().next().expect("one limit");
    assert!(receipt.is_void());
}
