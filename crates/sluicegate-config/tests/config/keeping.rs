//! What was spent is kept when a document changes.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate::{ManualClock, Memory};
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::Claims;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::Store;

fn policies(text: &str) -> Policies {
    Policies::new(&read_toml(text).expect("a document"), &Environment::new()).expect("policies")
}

fn store() -> Memory {
    Memory::builder().capacity(100).clock(ManualClock::new()).build()
}

/// What is left of the first limit after this many requests, which are all admitted.
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
        policies.charge(&view, &mut charge).expect("a charge");
        let outcome = store.take(&charge).now().expect("a decision");
        assert!(outcome.is_admitted());
        left = outcome.decision(&charge).statuses().next().map(|status| status.remaining);
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
    assert_eq!(left("[\"50/minute burst 70\"]"), Some(66));
    assert_eq!(left("[{ rate = \"20/minute\", soft = \"50%\" }]"), Some(15));
}

/// Five thousand of a day are no debt of a second, and the day's stay the day's.
#[test]
fn a_limit_put_in_front_of_another_takes_nothing_over_from_it() {
    let store = store();
    let left = |count, limits: &str| left_after(count, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left(5_000, "[\"10000/day\"]"), Some(5_000));
    assert_eq!(left(1, "[\"5/second\", \"10000/day\"]"), Some(4));
    assert_eq!(left(1, "[\"10000/day\", \"5/second\"]"), Some(4_998));
    assert_eq!(left(1, "[\"10000/day\"]"), Some(4_997));
}

#[test]
fn limits_that_change_places_keep_what_was_spent() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left("[\"10/second\", \"1000/day\"]"), Some(9));
    assert_eq!(left("[\"1000/day\", \"10/second\"]"), Some(998));
    assert_eq!(left("[\"10/second\", \"1000/day\"]"), Some(7));
}

#[test]
fn a_limit_with_another_period_begins_afresh() {
    let store = store();
    let left = |limits: &str| left_after(1, &policies(&rule(limits)), &store, "acme");
    assert_eq!(left("[\"10/hour\"]"), Some(9));
    assert_eq!(left("[\"20/minute\"]"), Some(19));
    assert_eq!(left("[\"10/hour\"]"), Some(8));
}

/// What a request to `path` is charged to: the limit's name, its count, and its row.
fn debit(policies: &Policies, path: &str) -> (String, u64, u64) {
    let mut request = Request::builder().uri(path).body(()).expect("a request");
    request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
    let view: HttpView<'_, ()> = HttpView::new(&request);
    let mut charge = Charge::new();
    policies.charge(&view, &mut charge).expect("a charge");
    let limit = charge.debits().next().expect("one limit").limit;
    (limit.name().to_string(), limit.count(), limit.id())
}

const CASES: [&str; 3] = [
    "{ when = { path = \"/search\" }, limits = [\"10/minute\"] }",
    "{ when = { path = \"/export\" }, limits = [\"5/minute\"] }",
    "{ when = { hours = { between = [\"00:00\", \"24:00\"] } }, limits = [\"30/minute\"] }",
];

fn with_cases(cases: &[&str]) -> Policies {
    policies(&format!("{}\ncases = [{}]", rule("[\"60/minute\"]"), cases.join(", ")))
}

#[test]
fn a_case_that_the_client_chooses_has_a_budget_of_its_own_whatever_its_place_and_numbers() {
    let [search, export, night] = CASES;
    let one = with_cases(&[search, export]);
    let two = with_cases(&[export, search]);
    let three = with_cases(&[export, &search.replace("10/", "20/")]);
    let row = |policies: &Policies, path: &str| debit(policies, path).2;
    for path in ["/search", "/export", "/"] {
        assert_eq!(row(&one, path), row(&two, path), "{path}");
        assert_eq!(row(&one, path), row(&three, path), "{path}");
    }
    let rows = ["/search", "/export", "/"].map(|path| row(&one, path));
    assert!(rows[0] != rows[1] && rows[1] != rows[2] && rows[0] != rows[2]);
    // The server chooses the hour, so that case continues the usual limit's count.
    let by_hour = with_cases(&[search, night]);
    assert_eq!(debit(&by_hour, "/"), ("a".to_owned(), 30, rows[2]));
    assert_eq!(row(&by_hour, "/search"), rows[0]);
}

#[test]
fn the_operator_can_say_which_cases_share_and_what_a_case_is_called() {
    let [search, _, night] = CASES;
    let with = |case: &str, more: &str| format!("{}, {more} }}", case.trim_end_matches(" }"));
    let row = |cases: &[&str], path: &str| debit(&with_cases(cases), path).2;
    let usual = row(&[search], "/");
    assert_eq!(row(&[&with(search, "shared = true")], "/search"), usual);
    assert_ne!(row(&[&with(night, "shared = false")], "/"), usual);
    let named = with(search, "name = \"search\"");
    let moved = named.replace("\"/search\"", "[\"/search\", \"/find\"]");
    assert_eq!(row(&[&named], "/search"), row(&[&moved], "/find"));
    assert_ne!(row(&[&named], "/search"), row(&[search], "/search"));
}

#[test]
fn searches_from_a_file_are_limited_however_much_else_is_asked_between() {
    let policies = with_cases(&CASES[..1]);
    let clock = ManualClock::new();
    let store = Memory::builder().capacity(100).clock(&clock).build();
    let admitted = |path: &str| {
        let mut request = Request::builder().uri(path).body(()).expect("a request");
        request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
        let view: HttpView<'_, ()> = HttpView::new(&request);
        let mut charge = Charge::new();
        policies.charge(&view, &mut charge).expect("a charge");
        u64::from(store.take(&charge).now().expect("a decision").is_admitted())
    };
    let (mut searches, mut others) = (0, 0);
    for _ in 0..36_000 {
        others += admitted("/");
        searches += admitted("/search");
        others += admitted("/");
        clock.advance(std::time::Duration::from_millis(100));
    }
    assert_eq!((searches, others), (10 + 599, 60 + 3_599));
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
    // What is left of the first limit in the list.
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

/// While there is capacity, ten times as much: one budget, and neither limit is exceeded.
#[test]
fn a_load_that_comes_and_goes_lets_nobody_past_the_usual_limit() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let roomy = Arc::new(AtomicBool::new(false));
    let has_room = Arc::clone(&roomy);
    let environment =
        Environment::new().has_capacity("database", move || has_room.load(Ordering::Relaxed));
    let text = format!(
        "{}\ncases = [{{ while = {{ has_capacity = \"database\" }}, limits = [\"100/minute\"] }}]",
        rule("[\"10/minute\"]")
    );
    let policies = Policies::new(&read_toml(&text).expect("a document"), &environment);
    let policies = policies.expect("policies");
    let clock = ManualClock::new();
    let store = Memory::builder().capacity(100).clock(&clock).build();
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
    let mut admitted = [0, 0];
    for turn in 0..36_000 {
        roomy.store(turn % 2 == 1, Ordering::Relaxed);
        let view: HttpView<'_, ()> = HttpView::new(&request);
        let mut charge = Charge::new();
        policies.charge(&view, &mut charge).expect("a charge");
        let outcome = store.take(&charge).now().expect("a decision");
        admitted[turn % 2] += u64::from(outcome.is_admitted());
        clock.advance(std::time::Duration::from_millis(100));
    }
    let [usual, roomy] = admitted;
    assert!(usual <= 10 + 600, "{usual}");
    assert!(usual + roomy <= 100 + 6_000, "{usual} and {roomy}");
    assert!(roomy >= 5_000, "{roomy}");
}
