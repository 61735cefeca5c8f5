use std::fs;
use std::path::Path;

use serde_json::Value;

use super::run::Outcomes;
use super::{file, plan, run};
use crate::testing::Files;
use crate::virtual_time::Rules;

const RULES: &str = r#"
[[rules]]
name = "api"
key = { header = "x-api-key" }
limits = ["60/minute burst 2"]
when = { path = "/api" }

[[rules]]
name = "login"
key = "ip"
limits = ["log 3 per 10 minutes"]
when = { path = "/login" }
count_if = [401]

[[rules]]
name = "reports"
key = "global"
limits = ["concurrent 1"]
when = { path = "/reports" }

[[rules]]
name = "mail"
key = "global"
limits = ["leaky 10/second queue 2"]
when = { path = "/mail" }

[[rules]]
name = "trial"
key = "global"
limits = [{ rate = "1/hour", shadow = true }]
when = { path = "/trial" }

[[rules]]
name = "elsewhere"
key = "global"
limits = ["1/hour"]
when = { path = "/busy" }
reject = { redirect = "https://busy.example.com/" }

[[rules]]
name = "nights"
key = "global"
limits = ["1/hour"]
when = { path = "/night" }
cases = [{ when = { hours = { between = ["22:00", "06:00"] } }, limits = ["2/hour"] }]
"#;

impl Files {
    fn rules(&self, text: &str) -> Rules {
        Rules::open(&self.write("rules.toml", text)).expect("rules")
    }
}

/// What became of a case with these requests.
fn outcomes(rules: &str, requests: &str) -> Outcomes {
    let files = Files::new();
    let rules = files.rules(rules);
    let text = format!("[[cases]]\nname = \"a\"\nrequests = [{requests}]\n");
    let cases = plan::read(&files.write("cases.toml", &text), &rules.names());
    let cases = cases.unwrap_or_else(|error| panic!("{error}"));
    run::run(&cases[0], &rules)
}

fn passes(requests: &str) {
    let outcomes = outcomes(RULES, requests);
    assert!(outcomes.differences.is_empty(), "{requests}: {:#?}", outcomes.differences);
}

fn differs(requests: &str, expected: &str) {
    let found = outcomes(RULES, requests).differences.join("\n");
    assert!(found.contains(expected), "{requests}: {found}");
}

/// What is wrong with a file of one case.
fn refused(case: &str) -> String {
    let files = Files::new();
    let rules = files.rules(RULES);
    let path = files.write("cases.toml", &format!("[[cases]]\n{case}\n"));
    let problems = plan::read(&path, &rules.names()).err().expect("a file with errors");
    problems.to_string().replace(&path.display().to_string(), "cases.toml")
}

#[test]
fn a_limit_is_met_exactly_and_one_microsecond_earlier_refuses() {
    let api = "path = \"/api\", headers = { X-Api-Key = \"a\" }";
    passes(&format!("{{ {api}, times = 3, expect = {{ served = 2, refused = 1 }} }}"));
    for (at, expect) in [("999999 us", "refused"), ("1 s", "served")] {
        passes(&format!(
            "{{ {api}, times = 2, expect = \"served\" }}, {{ {api}, at = \"{at}\", expect = \"{expect}\" }}"
        ));
    }
}

#[test]
fn times_may_be_in_any_order_in_the_file() {
    passes(
        "{ at = \"1 h\", path = \"/busy\", expect = \"served\" }, \
         { at = \"1 s\", path = \"/busy\", expect = { outcome = \"redirected\", status = 307, fields = { location = \
         \"https://busy.example.com/\" } } }, { at = \"0 s\", path = \"/busy\", expect = \"served\" }",
    );
}

#[test]
fn only_responses_that_count_are_charged() {
    passes(
        "{ path = \"/login\", ip = \"192.0.2.1\", times = 9, every = \"1 s\", expect = \"served\" }, \
         { path = \"/login\", ip = \"192.0.2.1\", at = \"10 s\", times = 4, every = \"1 s\", response = { status = 401 }, \
         expect = { served = 3, refused = 1, refused_by = { login = 1 } } }, \
         { path = \"/login\", ip = \"192.0.2.2\", at = \"13 s\", expect = { status = 200, by = [] } }, \
         { path = \"/login\", at = \"13 s\", expect = { outcome = \"failed\", status = 500 } }",
    );
}

/// A response that ends at the time of a request has ended before it.
#[test]
fn places_are_held_until_responses_end() {
    let slow = "path = \"/reports\", response = { takes = \"2 s\" }";
    passes(&format!(
        "{{ {slow}, expect = \"served\" }}, {{ {slow}, at = \"1999999 us\", expect = \"refused\" }}, \
         {{ {slow}, at = \"2 s\", expect = \"served\" }}"
    ));
}

#[test]
fn waits_are_told_and_compared() {
    passes(
        "{ path = \"/mail\", times = 4, expect = { served = 3, refused = 1, wait_at_most = \"200 ms\" } }, \
         { path = \"/mail\", at = \"1 s\", expect = { wait = \"0 s\" } }, \
         { path = \"/mail\", at = \"1 s\", expect = { wait = \"100 ms\" } }",
    );
    differs(
        "{ path = \"/mail\", times = 2, expect = { wait = \"0 s\" } }",
        "request 2 of 2, GET /mail at 0s: served with 200, after a wait of 100ms, expected a wait of 0s",
    );
}

#[test]
fn a_limit_on_trial_refuses_nobody_and_is_counted() {
    passes(
        "{ path = \"/trial\", times = 3, expect = { served = 3, shadowed_by = { trial = 2 } } }",
    );
}

#[test]
fn a_case_may_begin_at_night() {
    for (start, served) in [("2026-03-02T23:00:00Z", 2), ("2026-03-02T12:00:00+01:00", 1)] {
        let files = Files::new();
        let rules = files.rules(RULES);
        let text = format!(
            "[[cases]]\nname = \"a\"\nstart = \"{start}\"\nrequests = [{{ path = \"/night\", times = 3 }}]\n\
             expect = {{ served = {served} }}\n"
        );
        let cases = plan::read(&files.write("cases.toml", &text), &rules.names()).expect("cases");
        for _ in 0..2 {
            assert_eq!(run::run(&cases[0], &rules).differences, [""; 0]);
        }
    }
}

/// A test does not depend on the machine that runs it.
#[test]
fn processors_count_as_idle() {
    let rules = "[[rules]]\nname = \"api\"\nkey = \"global\"\nlimits = [\"1/hour\"]\n\
        cases = [{ while = { cpu = \"1%\" }, limits = [\"3/hour\"] }]\n";
    let files = Files::new();
    let rules = files.rules(rules);
    let text = "cases = [{ name = \"a\", requests = [{ times = 4, expect = { served = 3 } }] }]";
    let cases = plan::read(&files.write("cases.toml", text), &rules.names()).expect("cases");
    assert_eq!(run::run(&cases[0], &rules).differences, [""; 0]);
    assert!(rules.loads() > 0);
}

#[test]
fn a_difference_has_the_request_its_place_and_the_state_of_its_limits() {
    differs(
        "{ path = \"/api\", headers = { x-api-key = \"a\" }, times = 3, expect = \"served\" }",
        "cases.toml:3:81: request 3 of 3, GET /api at 0s: refused by api with 429, retry after 1 s, expected served\n    \
         api: 60/minute burst 2: 0 of 2 left, more in 1s",
    );
    differs("{ path = \"/api\", expect = \"served\" }", "incomplete with 400: the request lacks");
    differs(
        "{ path = \"/trial\", times = 3, expect = { shadowed_by = { trial = 3 }, served = 2 } }",
        "in all: 2 refused on trial by trial, expected 3",
    );
    differs("{ path = \"/api\", times = 9, expect = \"served\" }", "and 6 more requests");
}

#[test]
fn requests_that_no_limit_concerns_are_told() {
    let warned = |requests| outcomes(RULES, requests).warnings;
    assert_eq!(warned("{ path = \"/apis\", expect = \"served\" }").len(), 1);
    assert_eq!(warned("{ path = \"/busy\", expect = \"served\" }").len(), 0);
    assert_eq!(warned("{ path = \"/apis\", expect = { by = [] } }").len(), 0);
    assert_eq!(warned("{ path = \"/apis\", times = 9, expect = { refused = 0 } }").len(), 1);
    assert_eq!(warned("{ path = \"/apis\", expect = { refused_by = { api = 0 } } }").len(), 1);
}

#[test]
fn waits_that_nobody_could_have_are_told() {
    let login = "path = \"/login\", ip = \"192.0.2.1\"";
    let requests = |expect: &str| {
        format!(
            "{{ {login}, times = 3, response = {{ status = 401 }} }}, {{ {login}, times = 5, expect = {expect} }}"
        )
    };
    let warned = |expect: &str| outcomes(RULES, &requests(expect)).warnings;
    assert_eq!(warned("{ wait = \"30 s\" }").len(), 1);
    assert_eq!(warned("{ wait_at_most = \"30 s\" }").len(), 1);
    assert_eq!(warned("\"refused\"").len(), 0);
}

#[test]
fn a_client_with_a_mistake_is_named() {
    let files = Files::new();
    let text = "[clients.alice]\nip = \"192.0.2.1\"\n[clients.bob]\nip = \"192.0.2\"\n\
                [[cases]]\nname = \"a\"\nrequests = [{ client = \"bob\", expect = \"served\" }]\n";
    let problems = plan::read(&files.write("cases.toml", text), &[]).err().expect("no address");
    assert!(problems.to_string().contains(":4:6: clients.bob.ip: `192.0.2`"), "{problems}");
}

#[test]
fn cases_that_cannot_fail_are_errors() {
    for (case, expected) in [
        ("name = \"a\"\nrequests = [{}]", "1:1: cases[0]: nothing is expected"),
        (
            "name = \"a\"\nrequests = [{ expect = {} }]",
            "3:24: cases[0].requests[0].expect: nothing",
        ),
        (
            "name = \"a\"\nrequests = []\nexpect = \"served\"",
            "3:12: cases[0].requests: the case has no",
        ),
        ("name = \"a\"\nrequests = [{ times = 0, expect = \"served\" }]", "is never sent"),
        (
            "name = \"a\"\nstart = \"2254-12-31T00:00:00Z\"\nrequests = [{ times = 3, every = \"1 year\", expect = \"served\" }]",
            "beyond the year 2255",
        ),
        ("name = \"a\"\nrequests = [{ client = [], expect = \"served\" }]", "no client sends"),
    ] {
        let said = refused(case);
        assert!(said.contains(expected), "{said}");
    }
    let files = Files::new();
    let said = plan::read(&files.write("cases.toml", "cases = []"), &[]).err().expect("nothing");
    assert!(said.to_string().contains("there are no cases"), "{said}");
}

#[test]
fn every_mistake_has_its_line_and_column() {
    let said = refused(
        "name = \"a\"\nstart = \"soon\"\nrequests = [\n\
         { at = \"5 parsecs\", client = \"eve\", expect = { by = \"logn\" } },\n\
         { every = \"1 s\", ip = \"1.2.3\", expect = { refused_by = { x = 1 }, wait = \"-1 s\" } },\n\
         { times = 10_000_001, method = \"GET \", path = \"login\", headers = { \"a b\" = \"\" }, response = { status = 100, takes = \"\" }, expect = \"served\" },\n]",
    );
    for expected in [
        "cases.toml:3:9: cases[0].start: `soon` is not a time",
        "cases.toml:5:8: cases[0].requests[0].at: `5 parsecs` is not a duration",
        "cases.toml:5:30: cases[0].requests[0].client: there is no client `eve`",
        "cases.toml:5:53: cases[0].requests[0].expect.by: the rules have no limit called `logn`, expected `api`",
        "cases[0].requests[1].every: the request is sent once",
        "cases[0].requests[1].ip: `1.2.3` is not an address",
        "cases[0].requests[1].expect.refused_by: the rules have no limit called `x`",
        "cases[0].requests[1].expect.wait: `-1 s` is not a duration",
        "cases[0].requests: the case has more than 10000000 requests",
        "cases[0].requests[2].method: `GET ` is not a method",
        "cases[0].requests[2].path: `login` is not a path, expected one that begins with `/`",
        "cases[0].requests[2].headers: `a b` is not the name",
        "cases[0].requests[2].response.status: this is not the status",
        "cases[0].requests[2].response.takes: `` is not a duration",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    let said = refused("nam = \"a\"\nrequests = [{ expect = \"servd\" }, [\"/\"]]");
    for expected in [
        "cases.toml:2:1: cases[0].nam: `nam` is not known here; did you mean `name`?",
        "cases.toml:3:24: cases[0].requests[0].expect: `servd` is not known here; did you mean `served`?",
        "cases.toml:3:35: cases[0].requests[1]: found a list, expected a table",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[test]
fn json_is_read_as_toml_is() {
    let files = Files::new();
    let rules = files.rules(RULES);
    let text = r#"{"clients": {"a": {"ip": "192.0.2.1"}}, "cases": [{"name": "a", "requests":
        [{"client": "a", "path": "/login", "expect": "served"}]}]}"#;
    let cases = plan::read(&files.write("cases.json", text), &rules.names()).expect("cases");
    assert_eq!(run::run(&cases[0], &rules).differences, [""; 0]);
    let path = files.write("cases.json", &text.replace("\"expect\"", "\"expects\""));
    let said = plan::read(&path, &rules.names()).err().expect("an error").to_string();
    assert!(
        said.contains("cases.json:2:44: cases[0].requests[0].expects: `expects` is not"),
        "{said}"
    );
}

#[test]
fn more_keys_than_are_counted_fail_a_case() {
    let text = "[[rules]]\nname = \"a\"\nkey = \"path\"\nlimits = [\"1/day\"]\n";
    let files = Files::new();
    let rules = files.rules(text);
    let requests: Vec<_> = (0..200).map(|path| format!("{{ path = \"/{path}\" }}")).collect();
    let requests = requests.join(", ");
    let text = format!("[[cases]]\nname = \"a\"\nrequests = [{requests}]\nexpect = \"served\"\n");
    let cases = plan::read(&files.write("cases.toml", &text), &rules.names()).expect("cases");
    assert_eq!(run::run(&cases[0], &rules).differences, [""; 0]);
    let found = run::run_within(1, &cases[0], &rules).differences;
    assert!(found.concat().contains("the case has more than 1 keys"), "{found:?}");
}

/// Only what is under way takes memory.
#[test]
fn too_many_responses_under_way_end_a_case() {
    let requests =
        "{ path = \"/x\", times = 250_002, response = { takes = \"1 h\" }, expect = \"served\" }";
    let found = outcomes("rules = []", requests);
    assert!(found.differences.concat().contains("more than 250000 responses are under way"));
    assert_eq!(found.requests, 0);
}

#[test]
fn the_schema_that_is_checked_in_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases.schema.json");
    let schema = schemars::schema_for!(file::File).to_value();
    let generated = serde_json::to_string_pretty(&schema).expect("JSON can be printed") + "\n";
    if std::env::var_os("REWRITE_SCHEMA").is_some() {
        fs::write(&path, &generated).expect("the file can be written");
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == generated,
        "cases.schema.json is not what the types say: rewrite it with \
         `REWRITE_SCHEMA=1 cargo test -p sluicegate-server --all-features --bin sluicegate schema`",
    );
    for (name, part) in schema["$defs"].as_object().expect("definitions") {
        assert!(part["description"].is_string(), "{name} has no description");
        for (field, value) in part["properties"].as_object().into_iter().flatten() {
            assert!(value["description"] != Value::Null, "{name}.{field} has no description");
        }
    }
}
