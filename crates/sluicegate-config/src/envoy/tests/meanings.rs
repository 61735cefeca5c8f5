//! Which part of a request each descriptor reads.

use sluicegate_core::key::Claims;
use sluicegate_core::rule::KnownLimits;

use super::{headers, policies, read_yaml};
use crate::document::{Condition, Key, Proxies};
use crate::envoy::Descriptors;
use crate::envoy::service::Domain;
use crate::{Environment, Policies};
use sluicegate_tests::{Request, names};

fn file(descriptors: &str) -> String {
    format!("domain: d\ndescriptors:\n{descriptors}")
}

const RATE: &str = "rate_limit: { unit: minute, requests_per_unit: 5 }";

#[test]
fn an_unknown_key_is_a_problem_that_says_which_line_of_code_to_add() {
    let text = file(&format!("- {{ key: user, {RATE} }}\n- {{ key: user, value: v, {RATE} }}"));
    let problems = read_yaml(&text, &Descriptors::default()).expect_err("whose user?").to_string();
    assert_eq!(problems.lines().count(), 1, "{problems}");
    assert!(
        problems.starts_with("3:10: descriptors[0]: nothing says what `user` is"),
        "{problems}"
    );
    assert!(problems.contains("add .with(\"user\", ..)"), "{problems}");
}

#[test]
fn addresses_are_told_by_whole_networks() {
    let text = file(&format!(
        "- {{ key: remote_address, {RATE} }}
- {{ key: remote_address, value: 50.0.0.5, {RATE} }}
- {{ key: remote_address, value: 10.1.*, share_threshold: true, {RATE} }}
- {{ key: remote_address, value: '2001:db8::/32', {RATE} }}"
    ));
    let policies = policies(&text, &Descriptors::default());
    let from = |peer: &str| names(&Request::from(peer).charge(&policies));
    assert_eq!(from("50.0.0.1"), ["remote_address"]);
    assert_eq!(from("50.0.0.5"), ["remote_address_50.0.0.5"]);
    assert_eq!(from("10.1.2.3"), ["remote_address_10.1.*"]);
    assert_eq!(from("10.2.1.3"), ["remote_address"]);
    assert_eq!(from("2001:db8::1"), ["remote_address_2001:db8::/32"]);
    for value in ["nowhere", "10.1*", "*.1", "300.*"] {
        let text = file(&format!("- {{ key: remote_address, value: '{value}', {RATE} }}"));
        let problems = read_yaml(&text, &Descriptors::default()).expect_err("no address");
        assert!(problems.to_string().contains("3:10: descriptors[0]: `"), "{problems}");
    }
}

#[test]
fn the_address_behind_proxies_is_the_clients() {
    let trusted = vec!["192.0.2.0/24".to_owned()];
    let known = Descriptors::default().behind(Proxies::new(trusted));
    let text = file(&format!("- {{ key: remote_address, value: 50.0.0.5, {RATE} }}"));
    let policies = policies(&text, &known);
    let request = Request::default().header("x-forwarded-for", "50.0.0.5");
    assert_eq!(names(&request.charge(&policies)), ["remote_address_50.0.0.5"]);
    assert!(names(&Request::default().charge(&policies)).is_empty());
}

#[test]
fn parts_of_the_target_are_known() {
    let text = file(&format!(
        "- {{ key: path, value: /api/*/action, {RATE} }}
- {{ key: method, value: POST, {RATE} }}
- {{ key: host, value: '*.example.com', {RATE} }}"
    ));
    let policies = policies(&text, &Descriptors::default());
    let request = |method: &str, path: &str, host: &str| Request {
        method: method.into(),
        path: path.into(),
        host: Some(host.into()),
        ..Request::default()
    };
    let all = request("POST", "/api/7/action", "API.example.com:443").charge(&policies);
    assert_eq!(names(&all), ["path_/api/*/action", "method_POST", "host_*.example.com"]);
    assert!(request("GET", "/api/7", "example.com").charge(&policies).is_empty());
}

/// The limits to which a request is charged.
fn charged_to(policies: &Policies, method: &str, path: &str) -> Vec<String> {
    let request = Request { method: method.into(), path: path.into(), ..Request::default() };
    names(&request.charge(policies))
}

#[test]
fn no_spelling_is_a_way_around_a_path_or_a_method_in_a_file_of_envoy() {
    let policies = policies(
        &file(&format!(
            "- {{ key: path, value: /login, {RATE} }}
- {{ key: path, value: /api/*, {RATE} }}
- {{ key: method, value: GET, {RATE} }}
- {{ key: method, value: get, {RATE} }}
- {{ key: path, value: '/a/{{b}}', {RATE} }}"
        )),
        &Descriptors::default(),
    );
    let charged = |method: &str, path: &str| charged_to(&policies, method, path);
    for path in ["/login", "/%6cogin", "//login", "/login/", "/x/../login"] {
        assert_eq!(charged("POST", path), ["path_/login"], "{path}");
    }
    for path in ["/api/", "/api/x/y", "/%61pi/x", "/api/../x", "/api%2Fx"] {
        assert_eq!(charged("POST", path), ["path_/api/*"], "{path}");
    }
    assert_eq!(charged("GET", "/x"), ["method_GET"]);
    assert_eq!(charged("HEAD", "/x"), ["method_GET"]);
    // Braces are characters of the path to Envoy.
    assert!(charged("POST", "/a/x").is_empty());
    assert_eq!(charged("POST", "/a/{b}"), ["path_/a/{b}"]);
}

#[test]
fn no_spelling_reaches_an_exception_of_a_file_of_envoy() {
    let free = "rate_limit: { unlimited: true }";
    let policies = policies(
        &file(&format!(
            "- {{ key: path, {RATE} }}
- {{ key: path, value: /health, {free} }}
- {{ key: path, value: '/static/*', {free} }}
- {{ key: path, value: '*.css', {free} }}
- {{ key: method, {RATE} }}
- {{ key: method, value: GET, {free} }}"
        )),
        &Descriptors::default(),
    );
    let charged = |method: &str, path: &str| charged_to(&policies, method, path);
    for path in ["/health", "/static/a", "/x.css"] {
        assert!(charged("GET", path).is_empty(), "{path}");
    }
    for path in ["/health/", "/%68ealth", "/static", "/static/../login", "/static%2Fa"] {
        assert_eq!(charged("GET", path), ["path"], "{path}");
    }
    assert_eq!(charged("HEAD", "/health"), ["method"]);
}

#[test]
fn values_that_only_routes_know_hold_for_every_request_or_as_told() {
    let text = file(&format!("- {{ key: generic_key, value: uploads, {RATE} }}"));
    let everywhere = policies(&text, &Descriptors::default());
    assert_eq!(names(&Request::default().charge(&everywhere)), ["generic_key_uploads"]);

    let on_uploads = Condition { path: Some("/uploads/*".into()), ..Condition::default() };
    let known = Descriptors::default().when("generic_key", "uploads", on_uploads);
    let there = policies(&text, &known);
    let request = |path: &str| Request { path: path.into(), ..Request::default() };
    assert_eq!(names(&request("/uploads/7").charge(&there)), ["generic_key_uploads"]);
    assert!(request("/other").charge(&there).is_empty());

    let text = file(&format!("- {{ key: generic_key, value: other, {RATE} }}"));
    let problems = read_yaml(&text, &known).expect_err("when is it `other`?").to_string();
    assert!(problems.contains(".when(\"generic_key\", \"other\", condition)"), "{problems}");
    let text = file(&format!("- {{ key: generic_key, {RATE} }}"));
    let problems = read_yaml(&text, &known).expect_err("which values?").to_string();
    assert!(problems.contains("expected a `value` without `*`"), "{problems}");
}

#[test]
fn a_constant_is_compared_when_the_file_is_read() {
    let text = file(&format!(
        "- key: source_cluster
  value: proxy
  descriptors:
  - {{ key: destination_cluster, value: mock, {RATE} }}
- key: source_cluster
  value: other
  descriptors:
  - {{ key: destination_cluster, value: never, {RATE} }}"
    ));
    let known = Descriptors::default()
        .with("source_cluster", Key::Const("proxy".into()))
        .with("destination_cluster", Key::Const("mock".into()));
    let document = read_yaml(&text, &known).expect("a valid file");
    assert_eq!(document.rules.len(), 1);
    assert_eq!(document.rules[0].when, None);
}

#[test]
fn a_claim_is_what_the_application_has_verified() {
    let known = Descriptors::default().with("user", Key::Claim("user".into()));
    let text = file(&format!(
        "- {{ key: user, {RATE} }}\n- {{ key: user, value: 'test-*', rate_limit: {{ unlimited: true }} }}"
    ));
    let policies = policies(&text, &known);
    let of = |user: &str| {
        let claims = Claims::new().with("user", user.to_owned());
        names(&Request { claims, ..Request::default() }.charge(&policies))
    };
    assert_eq!(of("alice"), ["user"]);
    assert!(of("test-7").is_empty());
}

#[test]
fn a_header_sent_twice_is_no_way_past_a_limit() {
    let text = file(&format!(
        "- {{ key: user, {RATE} }}\n- {{ key: user, value: vip, rate_limit: {{ unlimited: true }} }}"
    ));
    let policies = policies(&text, &headers(&["user"]));
    let request = Request::default().header("user", "vip").header("user", "mallory");
    let mut charge = sluicegate_core::adapter::Charge::new();
    let missing = sluicegate_core::rule::Rule::charge(&policies, &request, &mut charge);
    assert!(missing.expect_err("which of them?").is_ambiguous());
    assert!(Request::default().header("user", "vip").charge(&policies).is_empty());
}

#[test]
fn nothing_is_admitted_by_a_limit_of_nothing() {
    use sluicegate_core::Memory;
    use sluicegate_core::store::Store;

    let text =
        file("- { key: user, value: banned, rate_limit: { unit: minute, requests_per_unit: 0 } }");
    let policies = policies(&text, &headers(&["user"]));
    let charge = Request::default().header("user", "banned").charge(&policies);
    let outcome = Memory::with_capacity(64).take(&charge).now().expect("a decision");
    assert!(!outcome.is_admitted());
}

#[test]
fn a_limit_is_a_fixed_window_or_a_token_bucket() {
    let text = |unit: &str| {
        file(&format!("- {{ key: user, rate_limit: {{ unit: {unit}, requests_per_unit: 7 }} }}"))
    };
    let rate = |unit: &str, known: &Descriptors| {
        let mut limits = Vec::new();
        sluicegate_core::rule::KnownLimits::each_limit(
            &policies(&text(unit), known),
            &mut |limit| {
                limits.push(limit.to_string());
            },
        );
        limits.remove(0)
    };
    let windows = headers(&["user"]);
    for (unit, expected) in [
        ("second", "fixed 7/second"),
        ("Minute", "fixed 7/minute"),
        ("hour", "fixed 7/hour"),
        ("day", "fixed 7/day"),
        ("week", "fixed 7/week"),
        ("month", "fixed 7 per 30 days"),
        ("year", "fixed 7 per 365 days"),
    ] {
        assert!(rate(unit, &windows).starts_with(expected), "{}", rate(unit, &windows));
    }
    assert!(rate("hour", &windows.token_buckets()).starts_with("7/hour"));
}

#[test]
fn names_are_those_of_the_services_statistics_if_they_fit() {
    let long = "v".repeat(40);
    let text = file(&format!(
        "- {{ key: user, value: 'a.b', {RATE} }}
- {{ key: user, value: {long}, {RATE} }}
- {{ key: user, value: 'ä', {RATE} }}
- {{ key: user, value: '\"', {RATE} }}
- key: user
  value: a
  descriptors:
  - {{ key: b, {RATE} }}"
    ));
    let document = read_yaml(&text, &headers(&["user", "b"])).expect("a valid file");
    let names: Vec<_> = document.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names[0], "user_a.b");
    assert!(names[1].starts_with("user_vvvvvvvvvvvvvvvvv~") && names[1].len() == 31, "{names:?}");
    // The last would be called as the first is.
    assert!(names[4].starts_with("user_a.b~"), "{names:?}");
    Policies::new(&document, &Environment::new()).expect("names of limits");
}

/// Two values whose names begin alike and have one digest.
const COLLIDING: [&str; 2] = ["customer122789", "customer339192"];

#[test]
fn limits_whose_digests_are_the_same_have_two_names() {
    let key = "x-tenant-identifier-hdr";
    let values = COLLIDING.map(|value| format!("- {{ key: {key}, value: {value}, {RATE} }}\n"));
    let text = file(&values.concat());
    let document = read_yaml(&text, &headers(&[key])).expect("a valid file");
    let names: Vec<_> = document.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["x-tenant-identifier-hd~9ded5dcb", "x-tenant-identifier-hd~9ded5dcc"]);
    Policies::new(&document, &Environment::new()).expect("names of limits");
    let (domain, _) = Domain::read(&text).expect("a valid file");
    Policies::new(&domain.document(), &Environment::new()).expect("names of limits");
}

#[test]
fn merged_files_have_no_name_twice() {
    let key = "x-tenant-identifier-hdr";
    let value = |value: &str| format!("- {{ key: {key}, value: {value}, {RATE} }}\n");
    let [one, other] = COLLIDING.map(value);
    let read = |descriptors: &str| Domain::read(&file(descriptors)).expect("a valid file").0;
    let mut domain = read(&format!("- {{ key: a_b, {RATE} }}\n{one}"));
    domain
        .merge(read(&format!("- {{ key: a, value: b, {RATE} }}\n{other}")))
        .expect("no key twice");
    domain.merge(read(&format!("- {{ key: c, {RATE} }}\n"))).expect("no key twice");
    let document = domain.document();
    let names: Vec<_> = document.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names.len(), 5);
    assert_eq!([names[0], names[2]], ["a_b", "c"]);
    assert!(names[1].starts_with("a_b~"), "{names:?}");
    assert_eq!(names[3..], ["x-tenant-identifier-hd~9ded5dcb", "x-tenant-identifier-hd~9ded5dcc"]);
    Policies::new(&document, &Environment::new()).expect("names of limits");
    let of = |key: &str, value: &str| domain.rule(&[(key, value)]).expect("a rule").to_string();
    assert!(of("a_b", "x").starts_with("a_b: "), "{}", of("a_b", "x"));
    assert!(of("a", "b").starts_with("a_b~"), "{}", of("a", "b"));
}

#[test]
fn what_is_on_trial_there_is_on_trial_here() {
    let text = file(&format!("- {{ key: user, shadow_mode: true, {RATE} }}"));
    let policies = policies(&text, &headers(&["user"]));
    let mut shadows = Vec::new();
    policies.each_limit(&mut |limit| shadows.push(limit.is_shadow()));
    assert_eq!(shadows, [true]);
}

#[test]
fn a_way_of_many_keys_is_one_budget() {
    let mut text = String::new();
    let keys = ["a", "b", "c", "e", "f", "g"];
    for (depth, key) in keys.iter().enumerate() {
        let space = "  ".repeat(depth);
        text.push_str(&format!("{space}- key: {key}\n"));
        let rate = if depth + 1 == keys.len() { RATE } else { "descriptors:" };
        text.push_str(&format!("{space}  {rate}\n"));
    }
    let policies = policies(&file(&text), &headers(&keys));
    let request = |last: &str| {
        let all = keys.iter().fold(Request::default(), |request, key| request.header(key, "1"));
        Request { headers: all.headers[..5].to_vec(), ..all }.header("g", last)
    };
    let key = |request: Request| request.charge(&policies).debits().next().map(|debit| debit.key);
    assert!(key(request("1")).is_some());
    assert_ne!(key(request("1")), key(request("2")));
    assert_eq!(key(Request::default().header("a", "1")), None);
}
