//! The last value that is accepted, and the first that is refused.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::condition::InFlight;
use sluicegate_core::rule::{KnownLimits, Rule};

fn policies(text: &str) -> Result<Policies, String> {
    let environment = Environment::new().in_flight(&InFlight::below(9)).cost("call", |_| 1);
    let policies = read_toml(text).and_then(|document| Policies::new(&document, &environment));
    policies.map_err(|problems| problems.to_string())
}

/// A rule with these settings.
fn rule(rest: &str) -> String {
    let key = if rest.starts_with("key =") { "" } else { "key = 'ip'\n" };
    let limits = if rest.starts_with("limits =") { "" } else { "limits = ['60/minute']\n" };
    format!("[[rules]]\nname = 'a'\n{key}{limits}{rest}\n")
}

fn proxy(listen: &str, upstream: &str) -> String {
    format!(
        "rules = []\n[listen]\naddress = '127.0.0.1:0'\n{listen}\n[upstream]\nurl = 'http://a:1'\n{upstream}\n"
    )
}

fn throttle(rest: &str) -> String {
    format!("rules = []\n[throttle]\nqueue = '1 s'\n{rest}\n")
}

/// A list of the same value.
fn list(value: &str, count: usize) -> String {
    format!("[{}]", vec![value; count].join(", "))
}

#[test]
fn numbers_are_accepted_up_to_their_bounds_and_not_beyond() {
    let limits = |count: usize| -> String {
        let limits: Vec<_> = (1..=count).map(|at| format!("'5/minute named l{at}'")).collect();
        rule(&format!("limits = [{}]", limits.join(", ")))
    };
    let rules = |count: usize| -> String {
        let rules = (1..=count).map(|at| rule("").replace("'a'", &format!("'r{at}'")));
        rules.collect()
    };
    let first =
        |count: usize| rule(&format!("key = {{ first = {} }}", list("{ claim = 'a' }", count)));
    for (accepted, refused) in [
        (limits(16), limits(17)),
        (rules(16), rules(17)),
        (first(2), first(1)),
        (first(4), first(5)),
        (rule(&format!("key = {}", list("'ip'", 4))), rule(&format!("key = {}", list("'ip'", 5)))),
        (rule("count_if = [101, 200, 599]"), rule("count_if = [100]")),
        (rule("count_if = [599]"), rule("count_if = [600]")),
        (rule("cost = 1"), rule("cost = 0")),
        (
            rule("cost = { header = 'x', least = 5, most = 5 }"),
            rule("cost = { header = 'x', least = 6, most = 5 }"),
        ),
        (rule("cost = { header = 'x', most = 1 }"), rule("cost = { header = 'x', most = 0 }")),
        (rule("cost = { body = 1 }"), rule("cost = { body = 0 }")),
        (rule("cost = { tokens = 'all', most = 1 }"), rule("cost = { tokens = 'all', most = 0 }")),
        (rule("cost = { call = 'call' }"), rule("cost = { call = 'call', default = 1 }")),
        (
            rule("settle = 'response'\nsettle_at_most = 1"),
            rule("settle = 'response'\nsettle_at_most = 0"),
        ),
        (
            rule("settle = { header = 'x', scale = 1 }"),
            rule("settle = { header = 'x', scale = 0 }"),
        ),
        (
            rule("cases = [{ while = { in_flight = 1 }, limits = ['9/minute'] }]"),
            rule("cases = [{ while = { in_flight = 0 }, limits = ['9/minute'] }]"),
        ),
        (
            rule("cases = [{ while = { cpu = '100%' }, limits = ['9/minute'] }]"),
            rule("cases = [{ while = { cpu = '101%' }, limits = ['9/minute'] }]"),
        ),
        (
            rule("cases = [{ while = { cpu = '1%' }, limits = ['9/minute'] }]"),
            rule("cases = [{ while = { cpu = '0%' }, limits = ['9/minute'] }]"),
        ),
        (
            rule("limits = [{ rate = '9/minute', ban = { for = '1 h', after = 1 } }]"),
            rule("limits = [{ rate = '9/minute', ban = { for = '1 h', after = 2 } }]"),
        ),
        (
            rule("reject = { redirect = '/a', status = 308 }"),
            rule("reject = { redirect = '/a', status = 309 }"),
        ),
        (proxy("head = 8192", ""), proxy("head = 8191", "")),
        (proxy("head = 1048576", ""), proxy("head = 1048577", "")),
        (proxy("body = 1024", ""), proxy("body = 1023", "")),
        (proxy("body = 67108864", ""), proxy("body = 67108865", "")),
        (proxy("fields = 16", ""), proxy("fields = 15", "")),
        (proxy("fields = 1000", ""), proxy("fields = 1001", "")),
        (proxy("connections = 1", ""), proxy("connections = 0", "")),
        (proxy("connections = 1000000", ""), proxy("connections = 1000001", "")),
        (proxy("", "requests = 1"), proxy("", "requests = 0")),
        (proxy("", "idle_connections = 1000000"), proxy("", "idle_connections = 1000001")),
        (throttle("capacity = { in_flight = 1 }"), throttle("capacity = { in_flight = 0 }")),
        (throttle("capacity = { cpu = '100%' }"), throttle("capacity = { cpu = '0%' }")),
        (
            throttle("capacity = { adaptive = { min = 3, start = 3, max = 3 } }"),
            throttle("capacity = { adaptive = { min = 4, start = 3, max = 3 } }"),
        ),
        (
            throttle("capacity = { adaptive = { min = 1, max = 1 } }"),
            throttle("capacity = { adaptive = { min = 0, max = 1 } }"),
        ),
        (
            throttle("capacity = { adaptive = { start = 1000 } }"),
            throttle("capacity = { adaptive = { start = 1001 } }"),
        ),
        (
            throttle("capacity = { in_flight = 9 }\nwhen_shed = { degrade = 1 }"),
            throttle("capacity = { in_flight = 9 }\nwhen_shed = { degrade = 0 }"),
        ),
    ] {
        assert_eq!(policies(&accepted).err(), None, "{accepted}");
        let problems = policies(&refused).expect_err(&refused);
        assert_eq!(problems.lines().count(), 1, "{refused}\n{problems}");
        assert!(problems.starts_with(|first: char| first.is_ascii_digit()), "{problems}");
    }
}

/// The limits in force, in words.
fn limits(text: &str) -> Vec<String> {
    let mut limits = Vec::new();
    policies(text).expect(text).each_limit(&mut |limit| limits.push(limit.to_string()));
    limits
}

#[test]
fn a_percentage_of_a_limit_is_rounded_down() {
    for (burst, percent, soft) in [(10, 99, 9), (10, 50, 5), (3, 34, 1), (200, 1, 2)] {
        let text = rule(&format!(
            "limits = [{{ rate = '60/minute', burst = {burst}, soft = '{percent}%' }}]"
        ));
        let limits = limits(&text);
        assert!(limits[0].contains(&format!(" soft {soft} ")), "{limits:?}");
    }
    // The percentage is one of the limit before `over`.
    let limits = limits(&rule("limits = [{ rate = '10/minute', over = '100%', soft = '50%' }]"));
    assert!(limits[0].contains("burst 20 ") && limits[0].contains(" soft 5 "), "{limits:?}");
}

/// The rows of a store that a request is charged to.
fn rows(policies: &Policies, path: &str, peer: &str) -> Vec<u64> {
    let mut request = Request::builder().uri(path).body(()).expect("a request");
    request.extensions_mut().insert(Peer(peer.parse().expect("an address")));
    let view: HttpView<'_, ()> = HttpView::new(&request);
    let mut charge = Charge::new();
    policies.charge(&view, &mut charge).expect("a key");
    charge.debits().map(|debit| debit.limit.id()).collect()
}

#[test]
fn a_case_has_a_budget_of_its_own_unless_the_server_chooses_it_or_the_file_says_so() {
    let shares = |case: &str| {
        let text = rule(&format!("cases = [{{ {case}, limits = ['9/minute'] }}]"));
        let policies = policies(&text).expect(&text);
        let inside = rows(&policies, "/case", "10.0.0.1");
        inside == rows(&policies, "/other", "192.0.2.1")
    };
    assert!(!shares("when = { path = '/case' }"));
    assert!(shares("when = { path = '/case' }, shared = true"));
    assert!(shares("when = { network = '10.0.0.0/8' }"));
    assert!(!shares("when = { network = '10.0.0.0/8' }, shared = false"));
    assert!(!shares("when = { network = '10.0.0.0/8', path = '/case' }"));
    assert!(shares("when = { any = [{ network = '10.0.0.0/8' }, { claim = { a = '1' } }] }"));
    assert!(!shares("when = { any = [{ network = '10.0.0.0/8' }, { header = { a = '1' } }] }"));
    assert!(shares("when = { not = { network = '192.0.2.0/24' } }"));
    assert!(!shares("when = { not = { path = '/other' } }"));
}

#[test]
fn the_first_case_of_two_that_hold_is_used() {
    let text = rule(
        "cases = [{ when = { path = '/a/*' }, limits = ['1/minute'] }, { when = { path = '/a/b' }, \
         limits = ['2/minute'] }, { when = { method = 'GET' }, limits = ['3/minute'] }]",
    );
    let policies = policies(&text).expect("policies");
    let count = |path: &str| counts(&policies, path);
    assert_eq!(count("/a/b"), [1]);
    assert_eq!(count("/a"), [1]);
    assert_eq!(count("/b"), [3]);
}

/// The numbers of the limits that a request is charged to.
fn counts(policies: &Policies, path: &str) -> Vec<u64> {
    let mut request = Request::builder().uri(path).body(()).expect("a request");
    request.extensions_mut().insert(Peer("192.0.2.1".parse().expect("an address")));
    let view: HttpView<'_, ()> = HttpView::new(&request);
    let mut charge = Charge::new();
    policies.charge(&view, &mut charge).expect("a key");
    charge.debits().map(|debit| debit.limit.count()).collect()
}

#[test]
fn no_spelling_of_a_path_gets_the_limits_of_another_case_alone() {
    let cases = |settings: &str| {
        let case = format!("cases = [{{ {settings}, limits = ['1000/minute'] }}]");
        policies(&rule(&case)).expect("policies")
    };
    let generous = cases("when = { path = '/static/*' }");
    assert_eq!(counts(&generous, "/static/x"), [1_000]);
    assert_eq!(counts(&generous, "/login"), [60]);
    for path in ["/static/../login", "/static/%2e%2e/login", "/static/..%2flogin"] {
        assert_eq!(counts(&generous, path), [1_000, 60], "{path}");
    }
    let exception = cases("when = { not = { path = '/admin/*' } }");
    assert_eq!(counts(&exception, "/x"), [1_000]);
    assert_eq!(counts(&exception, "/admin/del"), [60]);
    assert_eq!(counts(&exception, "/x/../admin/del"), [1_000, 60]);
    // One row is charged once, by the stricter numbers.
    let shared = cases("when = { path = '/static/*' }, shared = true");
    assert_eq!(counts(&shared, "/static/x"), [1_000]);
    assert_eq!(counts(&shared, "/static/../login"), [60]);
}

#[test]
fn two_cases_of_one_name_are_an_error() {
    let case = |name: &str, path: &str| {
        format!("{{ name = '{name}', when = {{ path = '{path}' }}, limits = ['9/minute'] }}")
    };
    let cases = |one: &str, other: &str| {
        policies(&rule(&format!("cases = [{}, {}]", case(one, "/a"), case(other, "/b"))))
    };
    assert!(cases("a", "b").is_ok());
    let error = cases("a", "a").expect_err("one name");
    assert!(error.contains("rules[0].cases[1].name: another case is also called `a`"), "{error}");
}
