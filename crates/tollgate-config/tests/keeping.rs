//! What was spent is kept when a document says something else.

use http::Request;
use tollgate::{HttpView, ManualClock, Memory, Peer};
use tollgate_config::{Environment, Policies, read_toml};
use tollgate_core::{Charge, Claims, Rule, Store};

fn policies(text: &str) -> Policies {
    Policies::new(&read_toml(text).expect("a document"), &Environment::new()).expect("policies")
}

fn store() -> Memory {
    Memory::builder().capacity(100).clock(ManualClock::new()).build()
}

/// What is left of the first limit after so many requests, which are all admitted.
fn left_after(
    count: u64,
    policies: &Policies,
    store: &Memory,
    customer: &'static str,
) -> Option<u64> {
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
    request.extensions_mut().insert(Claims::new().with("customer", customer));
    let view: HttpView<'_, ()> = HttpView::new(&request);
    let mut left = None;
    for _ in 0..count {
        let mut charge = Charge::new();
        policies.owes(&view, &mut charge).expect("a charge");
        let outcome = store.take(&charge).now().expect("a decision");
        assert!(outcome.is_admitted());
        left = outcome.decision(&charge).standings().next().map(|standing| standing.remaining);
    }
    left
}

fn rule(limits: &str) -> String {
    format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = {limits}")
}

#[test]
fn a_limit_whose_numbers_change_keeps_what_was_spent() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left("[\"10/minute\"]"), Some(9));
    assert_eq!(left("[\"10/minute\"]"), Some(8));
    assert_eq!(left("[\"100/minute\"]"), Some(97));
    assert_eq!(left("[\"50 per 2 hours burst 70\"]"), Some(66));
    assert_eq!(left("[{ rate = \"20/hour\", soft = \"50%\" }]"), Some(15));
}

#[test]
fn each_of_several_limits_keeps_its_own() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left("[\"log 10/minute\", \"1000/day\"]"), Some(9));
    assert_eq!(left("[\"log 10/minute\", \"1000/day\"]"), Some(8));
    assert_eq!(left("[\"log 20/minute\", \"500/day\"]"), Some(17));
}

#[test]
fn a_limit_that_joins_another_takes_nothing_from_it() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left("[\"log 10/minute\"]"), Some(9));
    assert_eq!(left("[\"log 10/minute\", \"1000/day\"]"), Some(8));
    assert_eq!(left("[\"log 10/minute\"]"), Some(7));
}

#[test]
fn tiers_may_list_their_limits_in_another_order() {
    let tiers = |customers: &str| {
        policies(&format!(
            "customers = {{ {customers} }}\n\
             tiers = {{ free = {{ limits = [\"100/day\", \"5/second\"] }}, paid = {{ limits = [\"50/second\", \"100/day\"] }} }}\n\
             [[rules]]\nname = \"a\"\nkey = {{ claim = \"customer\" }}\n\
             tiers = {{ customer = {{ claim = \"customer\" }}, default = \"free\" }}"
        ))
    };
    let store = store();
    // What is left of the first in the list.
    assert_eq!(left_after(3, &tiers(""), &store, "acme"), Some(97));
    assert_eq!(left_after(1, &tiers("acme = \"paid\""), &store, "acme"), Some(46));
    assert_eq!(left_after(1, &tiers(""), &store, "acme"), Some(95));
}

#[test]
fn limits_with_names_of_their_own_may_change_places() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    let (short, long) = ("\"log 10/minute named short\"", "\"1000/day named long\"");
    assert_eq!(left(&format!("[{short}, {long}]")), Some(9));
    assert_eq!(left(&format!("[{long}, {short}]")), Some(998));
}

#[test]
fn a_customer_who_moves_to_another_tier_keeps_what_was_spent() {
    let tiers = |customers: &str| {
        policies(&format!(
            "customers = {{ {customers} }}\n\
             tiers = {{ free = {{ limits = [\"10/minute\"] }}, paid = {{ limits = [\"100/minute\"] }} }}\n\
             [[rules]]\nname = \"a\"\nkey = {{ claim = \"customer\" }}\n\
             tiers = {{ customer = {{ claim = \"customer\" }}, default = \"free\" }}"
        ))
    };
    let store = store();
    assert_eq!(left_after(4, &tiers(""), &store, "acme"), Some(6));
    assert_eq!(left_after(1, &tiers("acme = \"paid\""), &store, "acme"), Some(95));
    assert_eq!(left_after(1, &tiers("acme = \"paid\""), &store, "other"), Some(9));
}
