use std::time::Duration;

use super::*;
use crate::charge::Charge;
use crate::clock::ManualClock;
use crate::key::testing::Request;
use crate::key::{Claim, Claims, Global, Header, Method};
use crate::memory::Memory;
use crate::rule::Rule;
use crate::store::Store;

const MINUTE: Duration = Duration::from_secs(60);

fn request(method: &str) -> Request {
    Request { method: method.into(), ..Request::default() }
}

/// What a limit is called, and its count.
fn told(limit: &Limit) -> String {
    format!("{} {}", limit.name(), limit.count())
}

/// The limits that `request` owes to.
fn owes(rule: &impl Rule<Request>, request: &Request) -> Vec<String> {
    let mut charge = Charge::new();
    rule.owes(request, &mut charge).expect("a key");
    charge.owed().map(|owed| told(&owed.limit)).collect()
}

#[test]
fn the_first_condition_that_holds_decides() {
    let rule = when(Method.is("POST"), Limit::per_minute(1))
        .or(Header("x-beta").is_present(), Limit::per_minute(2))
        .or(|request: &Request| request.path == "/x", Limit::per_minute(3))
        .otherwise(Limit::per_minute(4))
        .named("api")
        .by(Global);
    let beta = request("GET").header("x-beta", "1");
    let x = Request { path: "/x".into(), ..Request::default() };
    let both = request("POST").header("x-beta", "1");
    for (request, count) in [(both, 1), (beta, 2), (x, 3), (request("GET"), 4)] {
        assert_eq!(owes(&rule, &request), [format!("api/minute {count}")]);
    }
}

#[test]
fn a_list_of_cases_decides_as_code_does() {
    let cases = [
        (Method.is("POST"), Limit::per_minute(1).into()),
        (Method.is("PUT"), Limit::per_minute(2).into()),
    ];
    let rule = Cases::try_new(cases, Limit::per_minute(3)).unwrap().by(Global);
    for (method, count) in [("POST", 1), ("PUT", 2), ("GET", 3)] {
        let expected = [format!("3/minute {count}")];
        assert_eq!(owes(&rule, &request(method)), expected);
    }
    let none: Vec<(crate::condition::MethodIs, Limits)> = Vec::new();
    let rule = Cases::try_new(none, Limit::per_minute(3)).unwrap().by(Global);
    assert_eq!(owes(&rule, &request("GET")), ["3/minute 3"]);
}

#[test]
fn limits_of_one_period_are_called_the_same() {
    let rule = when(Method.is("POST"), [Limit::per_minute(1), Limit::per_hour(5).named("own")])
        .or(Method.is("PUT"), [Limit::per_day(7), Limit::per_minute(2)])
        .otherwise([Limit::per_minute(3).named("each minute"), Limit::per_hour(9)])
        .by(Global);
    assert_eq!(owes(&rule, &request("POST")), ["each minute 1", "own 5"]);
    assert_eq!(owes(&rule, &request("PUT")), ["7/day 7", "each minute 2"]);
    assert_eq!(owes(&rule, &request("GET")), ["each minute 3", "9/hour 9"]);
}

#[test]
fn a_limit_with_a_name_leaves_the_place_to_one_without() {
    let rule = when(Method.is("POST"), Limit::per_minute(1))
        .otherwise([Limit::per_minute(9).named("other"), Limit::per_minute(3)])
        .by(Global);
    assert_eq!(owes(&rule, &request("POST")), ["3/minute 1"]);
    assert_eq!(owes(&rule, &request("GET")), ["other 9", "3/minute 3"]);
}

#[test]
fn all_limits_of_all_cases_are_known() {
    let cases = when(Method.is("POST"), Limit::per_minute(1)).otherwise(Limit::per_minute(2));
    let mut known = Vec::new();
    cases.named("api").each_limit(&mut |limit| known.push(told(limit)));
    assert_eq!(known, ["api/minute 1", "api/minute 2"]);
}

#[test]
fn two_limits_at_one_place_of_one_case_are_refused() {
    let two = [Limit::per_minute(1), Limit::sliding_log(2, MINUTE)];
    let error = when(Method.is("POST"), two).try_otherwise(Limit::per_minute(3)).unwrap_err();
    assert!(error.to_string().contains("give one of them a name"), "{error}");
    let cases = when(Method.is("POST"), Limit::per_minute(1)).otherwise(Limit::per_minute(3));
    assert!(cases.try_named("ä").unwrap_err().to_string().contains("printable ASCII"));
}

/// Windows keep their row by name already when their count changes.
#[test]
fn what_was_spent_in_one_case_is_spent_in_the_other() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let rule = when(Claim("night").is_present(), Limit::sliding_log(5, MINUTE))
        .otherwise(Limit::sliding_log(3, MINUTE))
        .by(Global);
    let admitted = |claims: Claims| {
        let mut charge = Charge::new();
        rule.owes(&Request::default().extension(claims), &mut charge).expect("a key");
        store.take(&charge).now().expect("room").is_admitted()
    };
    let day = Claims::new;
    let night = || Claims::new().with("night", "yes");

    assert!(admitted(day()) && admitted(day()) && admitted(day()) && !admitted(day()));
    assert!(admitted(night()) && admitted(night()) && !admitted(night()));
    assert!(!admitted(day()));
    clock.advance(MINUTE);
    for _ in 0..5 {
        assert!(admitted(night()));
    }
    assert!(!admitted(night()) && !admitted(day()));
}
