//! Giving back.

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Enforcer, Paid};
use sluicegate_core::limit::Limits;
use sluicegate_core::store::Store;
use sluicegate_tests::{answer, key};

use super::*;

/// Spent in one window and given back in the next: a client with good timing gets twice the count.
#[test]
fn refund_into_the_next_window() {
    let subject = memory();
    for limit in [Limit::fixed_window(5, MINUTE), Limit::fixed_window(5, MINUTE).from_first()] {
        let charge = Charge::of(limit, key("alice"), 1);
        let spent: Vec<_> = (0..5).map(|_| subject.take(&charge)).collect();
        subject.pass(MINUTE);
        for decision in &spent {
            assert!(subject.admits(limit, "alice"), "{limit}");
            subject.settle(&charge, decision, |_| 0);
        }
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// A bucket becomes better than a fresh one.
#[test]
fn late_refund() {
    let subject = memory();
    for limit in [Limit::per_minute(5), Limit::sliding_log(5, MINUTE)] {
        let charge = Charge::of(limit, key("alice"), 5);
        let early = subject.take(&charge);
        subject.pass(MINUTE);
        subject.settle(&charge, &early, |_| 0);
        assert!(subject.take(&charge).is_admitted(), "{limit}");
        subject.settle(&charge, &early, |_| 0);
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// Another key has its place by now.
#[test]
fn refund_to_a_forgotten_key() {
    let subject = memory_of(1);
    let limit = Limit::per_minute(5);
    let charge = Charge::of(limit, key("alice"), 5);
    let forgotten = subject.take(&charge);
    subject.pass(MINUTE * 2);
    for number in 0..100 {
        subject.spend(Limit::per_minute(60), &number.to_string(), 1);
        subject.pass(SECOND * 2);
    }
    subject.settle(&charge, &forgotten, |_| 0);
    assert_eq!(subject.remaining(limit, "alice"), 5);
    assert!(subject.take(&charge).is_admitted());
    assert!(!subject.admits(limit, "alice"));
}

/// An error or a client that disconnects loses what was held, for ever.
#[test]
fn what_is_held_is_lost_on_error_or_disconnect() {
    let subject = memory();
    let limit = Limit::concurrent(2);
    let charge = Charge::of(limit, key("alice"), 1);
    for _ in 0..10 {
        let outcome = answer(subject.store.take(&charge)).expect("room");
        assert!(outcome.is_admitted());
        drop(Paid::new(
            Enforcer::new(subject.store.clone(), &Limits::from(limit)),
            charge.clone(),
            outcome,
        ));
    }
    assert_eq!(subject.remaining(Limit::concurrent(2), "alice"), 2);
}
