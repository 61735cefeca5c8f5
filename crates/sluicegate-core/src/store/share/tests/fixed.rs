//! Parts that never change.

use super::*;
use crate::store::fallback::Fallback;

fn memory() -> Memory {
    Memory::builder().clock(ManualClock::new()).build()
}

fn quarter() -> Share {
    Share::new(memory(), &Fleet::fixed(1, 4))
}

#[test]
fn limits_that_have_the_same_share_stay_apart() {
    let mut charge = Charge::new();
    for count in [4, 5] {
        charge.add(Limit::per_minute(count), KeyBuf::of("api"), 1).expect("room");
    }
    let store = quarter();
    let outcome = store.take(&charge).now().expect("a decision");
    assert!(outcome.is_admitted());
    assert_eq!(outcome.decision(&charge).statuses().count(), 2);
    assert!(!store.take(&charge).now().expect("a decision").is_admitted());
}

#[test]
fn what_is_given_back_reaches_the_share() {
    for limit in eight() {
        let (store, charge) = (Fallback(quarter(), quarter()), charge(limit, 2));
        let outcome = store.take(&charge).now().expect("a decision");
        let receipt = outcome.receipts().next().expect("one");
        assert!(!store.take(&charge).now().expect("a decision").is_admitted(), "{limit}");
        store.settle(charge.debits().next().expect("one"), &receipt, 0);
        assert!(store.take(&charge).now().expect("a decision").is_admitted(), "{limit}");
    }
}

#[test]
fn a_soft_limit_is_shared_too() {
    let store = quarter();
    let charge = charge(Limit::per_minute(16).soft(8), 1);
    let soft: Vec<_> = (0..4)
        .map(|_| {
            store
                .take(&charge)
                .now()
                .expect("a decision")
                .decision(&charge)
                .statuses()
                .next()
                .expect("one")
                .soft
        })
        .collect();
    assert_eq!(soft, [false, false, true, true]);
}

#[test]
fn what_was_spent_of_a_part_is_carried_over_and_a_shadow_of_it_tells_what_it_would_refuse() {
    let store = quarter();
    let [free, paid] = [8, 80].map(|count| Limit::per_minute(count).named("plan").carried());
    assert!(store.take(&charge(free, 1)).now().expect("a decision").is_admitted());
    let paid = charge(paid, 1);
    assert_eq!(store.take(&paid).now().expect("a decision").decision(&paid).remaining(), Some(18));
    assert!(!store.take(&charge(free, 1)).now().expect("a decision").is_admitted());

    let trial = charge(Limit::per_minute(4).shadow(), 1);
    let told = [(); 2].map(|()| store.take(&trial).now().expect("a decision"));
    assert_eq!(told.each_ref().map(Outcome::is_admitted), [true, true]);
    assert_eq!(told.each_ref().map(Outcome::is_shadowed), [false, true]);
    let receipt = told[1].receipts().next().expect("one limit");
    assert!(receipt.is_void());
}

#[test]
fn a_fixed_part_of_a_count_is_at_least_one_and_stays_as_it_is() {
    for (count, expected) in [(1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (11, 2)] {
        for limit in [
            Limit::per_minute(count),
            Limit::per_minute(count).refill(count, MINUTE),
            Limit::fixed_window(count, MINUTE),
            Limit::sliding_log(count, MINUTE),
            Limit::sliding_window(count, MINUTE),
            Limit::concurrent(count),
        ] {
            let store = quarter();
            store.fleet.see(1);
            store.check(&limit).expect("a part of it");
            assert_eq!(admitted(&store, limit), expected, "{limit}");
        }
    }
    let yearly = Limit::per(1, 365 * 24 * 3_600 * SECOND);
    assert!(Share::new(memory(), &Fleet::fixed(1, 100_000_000)).check(&yearly).is_err());
}

#[test]
fn a_fixed_part_that_admits_one_says_that_nothing_remains_after_it() {
    for limit in [
        Limit::per_minute(2),
        Limit::per_minute(2).refill(2, MINUTE),
        Limit::fixed_window(2, MINUTE),
        Limit::sliding_log(2, MINUTE),
        Limit::sliding_window(2, MINUTE),
        Limit::concurrent(2),
    ] {
        let (store, charge) = (quarter(), charge(limit, 1));
        let remaining = |outcome: Outcome| outcome.decision(&charge).remaining();
        assert_eq!(remaining(store.peek(&charge).now().expect("a decision")), Some(1), "{limit}");
        assert_eq!(remaining(store.take(&charge).now().expect("a decision")), Some(0), "{limit}");
    }
}

#[test]
fn a_fixed_part_of_a_refill_below_one_holds_no_more_than_its_part_of_the_burst() {
    let limit = Limit::per_minute(2).refill(2, MINUTE).burst(8);
    assert_eq!(admitted(&quarter(), limit), 2);
}

#[test]
fn a_part_is_not_nothing_and_not_more_than_all() {
    for (parts, of) in [(0, 4), (5, 4), (0, 0), (1, 1 << 27)] {
        assert!(std::panic::catch_unwind(|| Fleet::fixed(parts, of)).is_err());
    }
}

#[test]
fn a_key_that_is_blocked_inside_of_a_share_is_blocked_for_as_long() {
    let clock = ManualClock::new();
    let blocks = Blocks::new(Memory::builder().clock(&clock).build());
    let store = Share::new(blocks.clone(), &Fleet::fixed(1, 4));
    let take = || store.take(&charge(Limit::per_minute(8), 1)).now().expect("a decision");
    assert!(take().is_admitted());
    blocks.block("api", SECOND).now().expect("a block");
    let refused = take();
    assert_eq!(refused.retry_after(), Some(SECOND));
    let decision = refused.decision(&charge(Limit::per_minute(8), 1));
    let policies: Vec<_> = decision.statuses().map(|status| status.limit.own_name()).collect();
    assert_eq!(policies, [Some("blocked")]);
    clock.advance(SECOND);
    assert!(take().is_admitted());
    assert!(!take().is_admitted(), "two of eight");
}
