//! Requests that are charged to the lease and to other limits.

use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, Memory};

use super::*;

const CLIENT: Limit = Limit::per_minute(3).named("client");

fn beside(clock: &ManualClock) -> LeasedLimit {
    let memory = Memory::builder().clock(clock).build();
    LeasedLimit::rate("db").clock(clock).beside(memory).build().unwrap()
}

fn both(limit: &LeasedLimit, client: &str) -> Charge {
    let mut charge = Charge::of(CLIENT, KeyBuf::of(client), 1);
    charge.add(limit.limit(), KeyBuf::new(), 1).unwrap();
    charge
}

fn ask(limit: &LeasedLimit, client: &str) -> Outcome {
    limit.take(&both(limit, client)).now().unwrap()
}

#[test]
fn a_request_is_charged_to_the_lease_and_to_its_client_or_to_none() {
    let clock = ManualClock::new();
    let limit = beside(&clock);
    grant(&limit, 5.0);
    for _ in 0..3 {
        assert!(ask(&limit, "alice").is_admitted());
    }
    // Refused by the client's own limit: nothing is spent of the lease, and nothing is wanted for it.
    let wanted = limit.wants();
    for _ in 0..100 {
        let refused = ask(&limit, "alice");
        assert_eq!(refused.retry_after(), Some(MINUTE / 3));
    }
    assert_eq!(limit.wants(), wanted);
    assert!(ask(&limit, "bob").is_admitted());
    assert!(ask(&limit, "bob").is_admitted());
    // Refused by the lease: nothing is spent of the client's.
    let refused = ask(&limit, "bob");
    assert_eq!(refused.retry_after(), Some(SECOND / 5));
    let decision = refused.decision(&both(&limit, "bob"));
    let refusing: Vec<bool> = decision.statuses().map(|status| status.refused).collect();
    assert_eq!(refusing, [false, true]);
    clock.advance(SECOND);
    assert!(ask(&limit, "bob").is_admitted());
    assert!(!ask(&limit, "bob").is_admitted());
}

#[test]
fn both_charges_are_given_back() {
    let clock = ManualClock::new();
    let limit = beside(&clock);
    grant(&limit, 3.0);
    for _ in 0..50 {
        let outcome = ask(&limit, "alice");
        assert!(outcome.is_admitted());
        for (debit, receipt) in both(&limit, "alice").debits().zip(outcome.receipts()) {
            limit.settle(debit, &receipt, 0);
        }
    }
}

#[test]
fn requests_without_the_lease_are_decided_by_the_memory_alone() {
    let clock = ManualClock::new();
    let limit = beside(&clock);
    let charge = Charge::of(CLIENT, KeyBuf::of("alice"), 1);
    for expected in [true, true, true, false] {
        assert_eq!(limit.take(&charge).now().unwrap().is_admitted(), expected);
    }
    assert!(limit.take(&Charge::new()).now().unwrap().is_admitted());
}

#[test]
fn other_limits_are_refused_when_a_layer_is_made_and_not_left_unlimited() {
    let clock = ManualClock::new();
    let alone = rate(&clock);
    assert!(alone.check(&CLIENT).is_err());
    assert!(alone.take(&both(&alone, "alice")).now().is_err());
    // The same name with other options is another limit.
    let limit = beside(&clock);
    assert!(limit.check(&CLIENT).is_ok());
    assert!(limit.check(&limit.limit()).is_ok());
    assert!(limit.check(&limit.limit().shadow()).is_err());
    // One request, twice the same lease.
    let mut twice = Charge::of(limit.limit(), KeyBuf::of("a"), 1);
    twice.add(limit.limit(), KeyBuf::of("b"), 1).unwrap();
    assert!(limit.take(&twice).now().is_err());
}

#[test]
fn the_memory_beside_follows_what_another_store_has_decided() {
    let clock = ManualClock::new();
    let limit = beside(&clock);
    let spent = |client: &str| Charge::of(CLIENT, KeyBuf::of(client), 1);
    let (alice, bob) = (spent("alice"), spent("bob"));
    // Two of three by the other store here, and all three by the other store elsewhere.
    Store::follow(&limit, alice.debits().next().unwrap(), 0, 2);
    let elsewhere = Memory::builder().clock(&clock).build();
    (0..3).for_each(|_| assert!(elsewhere.take(&bob).now().unwrap().is_admitted()));
    let refusal = elsewhere.take(&bob).now().unwrap().decision(&bob);
    Store::follow_status(&limit, bob.debits().next().unwrap(), refusal.statuses().next().unwrap());
    let admits = |charge: &Charge| limit.take(charge).now().unwrap().is_admitted();
    assert_eq!([admits(&alice), admits(&alice), admits(&bob)], [true, false, false]);
}
