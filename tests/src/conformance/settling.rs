//! Giving back a charge, and charging more.

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND, shapes, timed};
use crate::{Subject, key};

/// A request that should not count did not count.
pub fn what_is_given_back_can_be_spent_again(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 1);
        let decisions: Vec<_> = (0..5).map(|_| subject.take(&charge)).collect();
        assert!(!subject.admits(limit, "alice"), "{limit}");
        subject.settle(&charge, &decisions[4], |_| 0);
        subject.settle(&charge, &decisions[1], |_| 0);
        assert!(subject.admits(limit, "alice"), "{limit}");
        assert!(subject.admits(limit, "alice"), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// An estimate was too high.
pub fn a_part_can_be_given_back(subject: &Subject<impl Store>) {
    for limit in timed(10).into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 8);
        let decision = subject.take(&charge);
        subject.settle(&charge, &decision, |debit| debit.cost);
        assert_eq!(subject.remaining(limit, "alice"), 2, "{limit}");
        subject.settle(&charge, &decision, |_| 3);
        assert_eq!(subject.remaining(limit, "alice"), 7, "{limit}");
    }
}

/// A bucket is never better than a fresh one.
pub fn nothing_is_minted_by_giving_back_twice(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 2);
        let decision = subject.take(&charge);
        for _ in 0..4 {
            subject.settle(&charge, &decision, |_| 0);
        }
        let admitted = (0..20).filter(|_| subject.admits(limit, "alice")).count();
        assert_eq!(admitted, 5, "{limit}");
    }
}

/// What has been replenished meanwhile cannot be given back.
pub fn what_is_given_back_late_is_not_given_to_later_requests(subject: &Subject<impl Store>) {
    for limit in timed(5).into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 3);
        let early = subject.take(&charge);
        subject.pass(MINUTE * 3);
        assert!(subject.spend(limit, "alice", 5).is_admitted(), "{limit}");
        subject.settle(&charge, &early, |_| 0);
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// Spent before the border, given back after it.
pub fn a_refund_does_not_reach_the_next_window(subject: &Subject<impl Store>) {
    let limit = Limit::fixed_window(5, MINUTE);
    if !subject.keeps(limit) {
        return;
    }
    subject.pass(MINUTE - SECOND);
    let charge = Charge::of(limit, key("alice"), 5);
    let before = subject.take(&charge);
    subject.pass(SECOND);
    assert!(subject.spend(limit, "alice", 4).is_admitted());
    subject.settle(&charge, &before, |_| 0);
    assert_eq!(subject.remaining(limit, "alice"), 1);
}

/// Nothing is left to give back.
pub fn giving_back_to_a_forgotten_key_does_nothing(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 3);
        let decision = subject.take(&charge);
        subject.reset(&charge);
        subject.settle(&charge, &decision, |_| 0);
        assert_eq!(subject.remaining(limit, "alice"), 5, "{limit}");
        assert!(subject.spend(limit, "alice", 5).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// An estimate was too low. The next requests wait for the rest.
pub fn more_can_be_charged_than_was_estimated(subject: &Subject<impl Store>) {
    for limit in timed(10).into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 1);
        let decision = subject.take(&charge);
        subject.settle(&charge, &decision, |_| 4);
        assert_eq!(subject.remaining(limit, "alice"), 6, "{limit}");
        subject.settle(&charge, &decision, |_| 25);
        assert_eq!(subject.remaining(limit, "alice"), 0, "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
        subject.pass(MINUTE * 10);
        assert_eq!(subject.remaining(limit, "alice"), 10, "{limit}");
    }
    let budget = Limit::per_second(10).burst(600);
    if !subject.keeps(budget) {
        return;
    }
    let charge = Charge::of(budget, key("bob"), 100);
    let decision = subject.take(&charge);
    subject.settle(&charge, &decision, |_| 900);
    // 900 and the next request, of which 600 fit.
    assert_eq!(subject.spend(budget, "bob", 1).retry_after(), Some(SECOND * 301 / 10));
}

/// The response came after the estimate had been replenished.
pub fn a_charge_on_top_reaches_a_key_that_has_recovered(subject: &Subject<impl Store>) {
    for limit in timed(10).into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 1);
        let decision = subject.take(&charge);
        subject.pass(MINUTE * 3);
        subject.reset(&charge);
        subject.settle(&charge, &decision, |_| 11);
        assert_eq!(subject.remaining(limit, "alice"), 0, "{limit}");
        subject.pass(MINUTE * 3);
    }
}

/// However long that takes.
pub fn what_is_held_is_held_until_it_is_given_back(subject: &Subject<impl Store>) {
    let limit = Limit::concurrent(3);
    if !subject.keeps(limit) {
        return;
    }
    let charge = Charge::of(limit, key("alice"), 1);
    let held: Vec<_> = (0..3).map(|_| subject.take(&charge)).collect();
    subject.pass(MINUTE * 60 * 24);
    let refused = subject.take(&charge);
    assert!(!refused.is_admitted());
    assert_eq!(refused.retry_after(), None);
    for decision in &held {
        subject.settle(&charge, decision, |_| 0);
        assert!(subject.admits(limit, "alice"));
        assert!(!subject.admits(limit, "alice"));
    }
}

/// A client leaves while the store decides, before or after it has charged.
pub fn what_nobody_waits_for_is_given_back(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let alone = Charge::of(limit, key("alice"), 1);
        // Two keys, which may be on two servers.
        let mut both = alone.clone();
        both.add(limit, key("bob"), 1).expect("two keys");
        for polls in 0..=2 {
            for _ in 0..5 {
                subject.leave(&alone, polls);
                subject.leave(&both, polls);
            }
        }
        for name in ["alice", "bob"] {
            let admitted = (0..10).filter(|_| subject.admits(limit, name)).count();
            assert_eq!(admitted, 5, "{limit} for {name}");
        }
    }
}
