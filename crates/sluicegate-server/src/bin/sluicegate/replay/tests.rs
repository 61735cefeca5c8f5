use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;
use sluicegate_core::adapter::KeyHash;
use sluicegate_core::observe::ShowKeys;

use super::judge::Judge;
use super::report::Report;
use super::{Replay, replay};
use crate::testing::Files;
use crate::virtual_time::Rules;

/// A file of one rule by address.
fn rule(limits: &str, more: &str) -> String {
    format!("[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [{limits:?}]\n{more}\n")
}

/// The lines of a log in JSON: seconds with fractions, and the rest of the object.
fn lines(requests: &[(f64, &str)]) -> String {
    let mut text = String::new();
    for (at, more) in requests {
        let at = 1_764_000_000.0 + at;
        writeln!(text, "{{\"msec\": {at:.3}, \"remote_addr\": \"192.0.2.1\", {more}}}").unwrap();
    }
    text
}

/// A request of nginx that took no time.
const GET: &str = r#""request": "GET /api/users HTTP/1.1", "status": 200, "request_time": 0"#;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    replay: Replay,
}

/// The report in JSON and as text, of the rules and against others.
fn reports(log: &str, rules: &str, against: Option<&str>) -> (Value, String) {
    reports_with(&[], log, rules, against)
}

fn reports_with(more: &[&str], log: &str, rules: &str, against: Option<&str>) -> (Value, String) {
    let (report, json) = judged(more, log, rules, against);
    (json, report.to_string())
}

fn judged(more: &[&str], log: &str, rules: &str, against: Option<&str>) -> (Report, Value) {
    let files = Files::new();
    let log = files.write("access.log", log);
    let rules = files.write("rules.toml", rules);
    let cli = ["replay", log.to_str().unwrap(), "--rules", rules.to_str().unwrap()];
    let options = Cli::parse_from(cli.iter().chain(more)).replay;
    let judge =
        |path: &PathBuf| Judge::new(Rules::open(path).expect("rules"), 100_000, KeyHash::new());
    let mut judged = judge(&rules);
    let against = against.map(|text| files.write("against.toml", text));
    let mut other = against.as_ref().map(judge);
    let mut records = options.logs.open().expect("a log");
    let differences = replay(&mut records, &mut judged, other.as_mut()).expect("a replay");
    let mut report = Report::new("rules.toml", &judged, &ShowKeys::Shown);
    if other.is_some() {
        report.compare("against.toml", &differences, &ShowKeys::Shown);
    }
    let json = serde_json::to_value(&report).expect("JSON");
    (report, json)
}

fn report(log: &str, rules: &str) -> Value {
    reports(log, rules, None).0
}

#[test]
fn each_request_is_decided_at_its_time() {
    let log = lines(&[(0.0, GET), (0.5, GET), (0.999, GET), (1.0, GET), (1.0, GET), (5.0, GET)]);
    let found = report(&log, &rule("60/minute burst 1", ""));
    let policy = &found["policies"][0];
    assert_eq!(found["requests"], 6);
    assert_eq!(policy["refused"], 3);
    assert_eq!(policy["first_refusals"], 2, "{policy}");
    assert_eq!(policy["repeated_refusals"], 1);
    assert_eq!(policy["clients"], 1);
    assert_eq!(policy["clients_refused"], 1);
    assert_eq!(policy["worst_minute"]["refused"], 3);
    assert_eq!(policy["paths"][0][0], "GET /api/users");
    assert_eq!(policy["who"][0][0], "ip:192.0.2.1");
    assert!((found["refused_share"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    assert!(policy["would_wait"]["longest"].as_f64().unwrap() <= 1.0);
}

#[test]
fn other_algorithms_are_counted_beside() {
    // Two windows of ten seconds: two late in the first, and two early in the second.
    let log = lines(&[(8.0, GET), (9.0, GET), (11.0, GET), (12.0, GET)]);
    let policy = &report(&log, &rule("log 2 per 10 seconds", ""))["policies"][0];
    assert_eq!(policy["refused"], 2);
    assert_eq!(policy["otherwise_refused"]["fixed window"], 0);
    assert_eq!(policy["otherwise_refused"]["token bucket"], 2);
    assert!(policy["otherwise_refused"].get("log").is_none());
}

/// In a store, what one limit refuses is charged to no other one.
#[test]
fn other_algorithms_see_what_no_other_limit_refuses() {
    let requests: Vec<_> = (0..200).map(|number| (f64::from(number) / 4.0, GET)).collect();
    let log = lines(&requests);
    for limit in ["log 50 per minute", "fixed 50/minute", "sliding 50/minute", "50/minute"] {
        let rules = format!(
            "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"{limit}\", \"fixed 5/day named day\"]\n"
        );
        let found = report(&log, &rules);
        let policies = found["policies"].as_array().expect("two limits");
        assert_eq!(policies.iter().map(|it| it["refused"].as_u64().unwrap()).sum::<u64>(), 195);
        let of_limit = policies.iter().find(|it| it["refused"] == 0).expect("the day refuses");
        let otherwise = of_limit["otherwise_refused"].as_object().expect("algorithms");
        assert!(otherwise.len() == 3 && otherwise.values().all(|it| *it == 0), "{of_limit}");
    }
}

/// A proxy may add a line to the one that the client has written, as HAProxy does.
#[test]
fn all_lines_of_a_header_are_read() {
    let mut log = String::new();
    for number in 0..20 {
        let lines = format!("[\"198.51.100.{number}\",\"203.0.113.9\"]");
        writeln!(
            log,
            "{{\"ts\":{}.5,\"request\":{{\"remote_ip\":\"10.0.0.1\",\"method\":\"GET\",\"host\":\"a.example\",\"uri\":\"/\",\
             \"headers\":{{\"X-Forwarded-For\":{lines}}}}},\"duration\":0.001,\"status\":200,\"size\":2}}",
            1_764_000_000 + number
        )
        .unwrap();
    }
    let rules = format!("[proxies]\ntrusted = [\"10.0.0.0/8\"]\n{}", rule("10/minute", ""));
    let found = report(&log, &rules);
    assert_eq!(found["policies"][0]["clients"], 1, "{found:#}");
}

#[test]
fn a_response_that_does_not_count_gives_its_charge_back() {
    let request = |status: u16, took: f64| {
        format!(r#""request": "POST /login HTTP/1.1", "status": {status}, "request_time": {took}"#)
    };
    let (good, bad, slow) = (request(200, 0.0), request(401, 0.0), request(200, 5.0));
    let rules = rule("log 2 per 10 minutes", "count_if = [401]");
    let log = lines(&[(0.0, &good), (1.0, &good), (2.0, &bad), (3.0, &bad), (4.0, &bad)]);
    assert_eq!(report(&log, &rules)["policies"][0]["refused"], 1);
    // Nginx writes at the end: this one came at 0, and its charge is given back at 5.
    let log = lines(&[(5.0, &slow), (1.0, &bad), (4.0, &bad), (6.0, &bad)]);
    let found = report(&log, &rules);
    assert_eq!(found["policies"][0]["refused"], 1, "{found}");
}

#[test]
fn places_are_held_for_as_long_as_responses_took() {
    let request = |took: f64| {
        format!(r#""request": "GET /slow HTTP/1.1", "status": 200, "request_time": {took}"#)
    };
    // They come at 0, 1, 2 and 10.
    let log = lines(&[
        (3.0, &request(3.0)),
        (3.0, &request(2.0)),
        (4.0, &request(2.0)),
        (10.0, &request(0.0)),
    ]);
    let policy = &report(&log, &rule("concurrent 2", ""))["policies"][0];
    assert_eq!(policy["refused"], 1, "{policy}");
    assert_eq!(policy["places_in_use"], serde_json::json!([2, 2]));
    let without = r#""request": "GET /slow HTTP/1.1", "status": 200"#;
    let found = report(&lines(&[(0.0, without), (0.0, without)]), &rule("concurrent 1", ""));
    assert_eq!(found["policies"][0]["refused"], 0);
    assert!(
        found["notes"][0].as_str().unwrap().starts_with("2 requests held their place"),
        "{found}"
    );
}

#[test]
fn a_rule_that_looks_for_what_the_log_does_not_have_is_named_and_charges_nothing() {
    let keys = [
        ("{ header = \"x-api-key\" }", "the header `x-api-key`"),
        ("{ claim = \"customer\" }", "claims"),
        ("\"route\"", "the route"),
        ("\"host\"", "the host"),
        // It may be there in truth, so the address would be the wrong budget.
        ("{ first = [{ header = \"x-api-key\" }, \"ip\"] }", "the header `x-api-key`"),
        ("{ optional = { header = \"x-api-key\" } }", "the header `x-api-key`"),
    ];
    for (key, lacks) in keys {
        let rules = format!(
            "{}[[rules]]\nname = \"other\"\nkey = {key}\nlimits = [\"1/hour\"]\n",
            rule("2/hour", "")
        );
        let (found, text) = reports(&lines(&[(0.0, GET), (1.0, GET), (2.0, GET)]), &rules, None);
        assert_eq!(found["policies"][0]["refused"], 1, "{key}: {found}");
        assert_eq!(found["policies"][1]["requests"], 0, "{key}");
        let expected = serde_json::json!([
            { "rule": "other", "lacks": [lacks], "requests": 3, "of": 3 }
        ]);
        assert_eq!(found["unjudged"], expected, "{key}");
        assert!(text.contains(&format!("rule `other` looks for {lacks}")), "{text}");
        assert!(text.contains("3 of 3 requests (100.0 %)"), "{text}");
    }
    let with_condition = rule("1/hour", "when = { host = \"api.example.com\" }");
    let found = report(&lines(&[(0.0, GET), (1.0, GET)]), &with_condition);
    assert_eq!(found["unjudged"][0]["requests"], 2, "{found}");
}

#[test]
fn very_many_rules_that_cannot_be_judged_are_found_out_at_once() {
    let rules: String = (0..20_000)
        .map(|number| {
            let when = format!("when = {{ host = \"{number}.example.com\" }}");
            rule("1/hour", &when).replace("\"api\"", &format!("\"r{number:05}\""))
        })
        .collect();
    let log = lines(&[(0.0, GET), (1.0, GET), (2.0, GET)]);
    let found = report(&log, &(rules + &rule("2/hour", "")));
    let unjudged = found["unjudged"].as_array().expect("a list");
    assert_eq!(unjudged.len(), 20_000);
    assert_eq!(
        unjudged[19_999],
        serde_json::json!({ "rule": "r19999", "lacks": ["the host"], "requests": 3, "of": 3 })
    );
    assert_eq!(found["outcomes"]["refused"], 1, "{}", found["outcomes"]);
}

#[test]
fn a_header_that_the_log_has_and_a_request_lacks_is_the_clients_mistake() {
    let with = format!("{GET}, \"http_x_api_key\": \"a\"");
    let without = format!("{GET}, \"http_x_api_key\": \"\"");
    let rules = rule("1/hour", "").replace("\"ip\"", "{ header = \"x-api-key\" }");
    let log = lines(&[(0.0, &with), (1.0, &with), (2.0, &without)]);
    let fields = ["--fields", "http_x_api_key=http_x_api_key"];
    let (found, _) = reports_with(&fields, &log, &rules, None);
    assert_eq!(found["policies"][0]["refused"], 1, "{found}");
    assert_eq!(found["outcomes"]["incomplete"], 1, "{found}");
    assert_eq!(found["unjudged"], serde_json::json!([]));
}

/// The bytes of a response are its `Content-Length`.
#[test]
fn a_cost_by_bytes_is_settled_and_another_header_is_told_to_lack() {
    let with = |bytes: u64| format!("{GET}, \"body_bytes_sent\": {bytes}");
    let (large, small) = (with(900), with(10));
    let log = lines(&[(0.0, &large), (1.0, &small), (2.0, &small)]);
    let rules = |header: &str| {
        rule("1000/day", &format!("settle = {{ header = \"{header}\" }}\ncost = 100"))
    };
    let found = report(&log, &rules("content-length"));
    // 100 fit beside 900, and are settled to 10. The third finds 90 left.
    assert_eq!(found["policies"][0]["refused"], 1, "{found}");
    let large = with(950);
    let log = lines(&[(0.0, &large), (1.0, &small), (2.0, &small)]);
    let found = report(&log, &rules("content-length"));
    assert_eq!(found["policies"][0]["refused"], 2, "{found}");
    assert!(found["policies"][0].get("otherwise_refused").is_none(), "{found}");
    let found = report(&log, &rules("x-cost"));
    assert_eq!(found["policies"][0]["refused"], 0, "{found}");
    let note = "3 responses were settled without the header `x-cost`, which the log does not have";
    assert!(found["notes"].as_array().unwrap().iter().any(|it| it == note), "{found}");
}

/// The log of one client, with times that are cut to whole seconds or not.
fn second_log(times: &[f64], is_whole: bool) -> String {
    let mut text = String::new();
    for time in times {
        if is_whole {
            let second = *time as u64;
            let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
            writeln!(
                text,
                "192.0.2.1 - - [24/Nov/2025:{hour:02}:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\""
            )
            .unwrap();
        } else {
            text += &lines(&[(*time, GET)]);
        }
    }
    text
}

/// What the true times make of a limit is within the bounds of whole seconds.
#[test]
fn whole_seconds_give_bounds_that_hold() {
    let mut state = 7_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut all_least = 0;
    for limits in
        ["60/minute burst 5", "4/second burst 9", "log 5 per 3 seconds", "fixed 5 per 3 seconds"]
    {
        for scale in [0.3, 0.9, 2.0] {
            let mut time = 0.0;
            let times: Vec<_> = (0..300)
                .map(|_| {
                    time += next() * scale;
                    // As a log with milliseconds has it.
                    (time * 1_000.0_f64).floor() / 1_000.0
                })
                .collect();
            let truth = report(&second_log(&times, false), &rule(limits, ""));
            let truth = truth["policies"][0]["refused"].as_u64().unwrap();
            let found = report(&second_log(&times, true), &rule(limits, ""));
            let bounds = &found["policies"][0]["bounds"];
            let least = bounds["at_least"].as_u64().unwrap_or_else(|| panic!("{limits}: {found}"));
            let most = bounds["at_most"].as_u64().unwrap_or(u64::MAX);
            assert!((least..=most).contains(&truth), "{limits} {scale}: {truth} in {bounds}");
            assert!(most < 300, "{limits} {scale}: {bounds}");
            all_least += least;
        }
    }
    assert!(all_least > 500, "{all_least} are hardly a bound");
    let found = report(&second_log(&[0.0, 0.5], false), &rule("1/minute", ""));
    assert_eq!(found["policies"][0].get("bounds"), None);
}

/// A script that looks at the exit status alone is not told that all is well.
#[test]
fn what_could_not_be_judged_counts_as_above_and_short_logs_and_old_limits_are_told() {
    let rules = rule("1/day", "").replace("\"ip\"", "{ header = \"x-api-key\" }");
    let refused = GET.replace("200", "429");
    let (found, text) = reports(&lines(&[(0.0, GET), (1.0, &refused)]), &rules, None);
    assert_eq!(found["refused_share"], 0.0);
    assert!(text.contains("note: api counts over 24.0 h, and the log has 1.0 s only"), "{text}");
    assert!(text.contains("note: 1 requests of the log were answered with 429"), "{text}");
}

/// A rule refuses a request without its key with 400, and no limit does.
#[test]
fn requests_without_a_key_count_as_above_and_as_newly_refused() {
    let with = format!("{GET}, \"http_x_api_key\": \"a\"");
    let without = format!("{GET}, \"http_x_api_key\": \"\"");
    let log = lines(&[(0.0, &with), (1.0, &without), (2.0, &with), (3.0, &without)]);
    let by_key = rule("9/hour", "").replace("\"ip\"", "{ header = \"x-api-key\" }");
    let fields = ["--fields", "http_x_api_key=http_x_api_key"];
    let (judged, found) = judged(&fields, &log, &by_key, Some(&rule("9/hour", "")));
    assert_eq!(found["outcomes"]["incomplete"], 2, "{found}");
    assert!(judged.is_above(0.49) && !judged.is_above(0.5), "{found}");
    let changes = &found["against"];
    assert_eq!((&changes["refused_before"], &changes["newly_refused"]), (&0.into(), &2.into()));
}

#[test]
fn two_files_are_compared_request_by_request() {
    let log = lines(&[(0.0, GET), (1.0, GET), (2.0, GET), (3.0, GET)]);
    let (found, text) = reports(&log, &rule("1/hour", ""), Some(&rule("3/hour", "")));
    let expected = serde_json::json!({
        "against": "against.toml", "refused_before": 1, "newly_refused": 2, "no_longer_refused": 0,
        "who_is_newly_refused": [["ip:192.0.2.1", 2]],
    });
    assert_eq!(found["against"], expected);
    assert!(
        text.contains("2 newly refused, 0 no longer refused\n  who          2 ip:192.0.2.1"),
        "{text}"
    );
}

#[test]
fn queues_trials_redirects_and_bans_are_told() {
    let log = lines(&[(0.0, GET), (0.0, GET), (0.0, GET), (0.0, GET)]);
    let queue = &report(&log, &rule("leaky 10/second queue 1", ""))["policies"][0];
    assert_eq!((&queue["refused"], &queue["waited"]["count"]), (&2.into(), &1.into()), "{queue}");
    let trial = report(&log, &rule("1/hour", "reject = \"shadow\""));
    assert_eq!(trial["policies"][0]["refused_on_trial"], 3, "{trial}");
    assert_eq!(trial["outcomes"]["served"], 4);
    let degraded = report(&log, &rule("1/hour", "reject = \"degrade\""));
    assert_eq!(degraded["outcomes"]["degraded"], 3, "{degraded}");
    let moved = report(&log, &rule("1/hour", "reject = { redirect = \"https://a.example/\" }"));
    assert_eq!(moved["outcomes"]["redirected"], 3, "{moved}");
    let banned = rule("x", "").replace("\"x\"", "{ rate = \"1/hour\", ban = { for = \"1 day\" } }");
    let banned = &report(&log, &banned)["policies"][0];
    assert!(banned["refused_by_ban"].as_u64().unwrap() > 0, "{banned}");
}

/// Secrets in queries and the addresses of clients are not in a report.
#[test]
fn a_report_shows_no_queries_and_keys_only_where_that_is_asked_for() {
    let secret = r#""request": "GET /api/users?token=hunter2 HTTP/1.1", "status": 200"#;
    let files = Files::new();
    let rules = Rules::open(&files.write("rules.toml", &rule("1/hour", ""))).expect("rules");
    let mut judge = Judge::new(rules, 1_000, KeyHash::new());
    let log = files.write("access.log", &lines(&[(0.0, secret), (1.0, secret)]));
    let cli = Cli::parse_from(["replay", log.to_str().unwrap(), "--rules", "rules.toml"]);
    let mut records = cli.replay.logs.open().expect("a log");
    replay(&mut records, &mut judge, None).expect("a replay");
    let text = Report::new("rules.toml", &judge, &super::show_keys(false).expect("a secret"));
    let text = text.to_string();
    assert!(text.contains("who          1 $") && text.contains("GET /api/users"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("192.0.2.1"), "{text}");
}
