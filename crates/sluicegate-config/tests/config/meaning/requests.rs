//! Keys, conditions, costs, cases and rejections.

use super::*;

#[test]
fn a_key_that_is_none() {
    let key = |key: &str| {
        problems(&format!("[[rules]]\nname = \"a\"\nkey = {key}\nlimits = [\"1/second\"]"))
    };
    for (text, problem) in [
        (
            "{ header = \"x y\" }",
            "3:18: rules[0].key.header: `x y` is not the name of a header, expected a name such as `x-api-key`",
        ),
        (
            "{ claim = \"\" }",
            "3:17: rules[0].key.claim: the name is empty, expected the name of a claim",
        ),
        ("{ first = [\"ip\"] }", "3:17: rules[0].key.first: `first` takes two to four keys"),
        ("[]", "3:7: rules[0].key: a list of keys has one to four keys"),
        (
            "[\"country\", { cookie = \"\" }]",
            "3:8: rules[0].key[0]: there is no GeoIP database, expected `geoip` with a `database`\n\
             3:30: rules[0].key[1].cookie: the name is empty, expected the name of a cookie",
        ),
    ] {
        assert_eq!(key(text), problem, "{text}");
    }
}

#[test]
fn a_condition_that_can_never_hold_or_cannot_be_read() {
    for (when, problem) in [
        (
            "{ method = \"post\" }",
            "4:19: rules[0].when.method: methods are case-sensitive, expected `POST` instead of `post`",
        ),
        ("{ method = [] }", "4:19: rules[0].when.method: the list is empty, expected at least one"),
        (
            "{ path = [\"/a\", \"b\"] }",
            "4:24: rules[0].when.path[1]: the path pattern `b` does not begin with a `/`",
        ),
        (
            "{ route = \"users\" }",
            "4:18: rules[0].when.route: the route `users` does not start with `/`, expected one such as `/users/{id}`",
        ),
        (
            "{ host = \"*.*.example.com\" }",
            "4:17: rules[0].when.host: the host pattern `*.*.example.com` has a `*` elsewhere than in a `*.` at \
             its beginning",
        ),
        (
            "{ header = { \"x y\" = \"1\" } }",
            "4:29: rules[0].when.header.\"x y\": `x y` is not the name of a header, expected a name such as `x-api-key`",
        ),
        (
            "{ claim = { plan = [] } }",
            "4:27: rules[0].when.claim.plan: the list is empty, expected at least one",
        ),
        (
            "{ network = [\"10.0.0.0/8\", \"10.0.0.0/33\"] }",
            "4:35: rules[0].when.network[1]: the network `10.0.0.0/33` needs a prefix length from 0 to \
             32: an IPv4 address has 32 bits",
        ),
        (
            "{ country = [\"DE\"] }",
            "4:20: rules[0].when.country: there is no GeoIP database, expected `geoip` with a `database`",
        ),
        (
            "{ hours = { between = [\"25:00\", \"06:00\"] } }",
            "4:30: rules[0].when.hours.between: `25:00` is no time of day: hours and minutes from `00:00` to \
             `24:00`, such as `09:30`",
        ),
        (
            "{ hours = { between = [\"22:00\"] } }",
            "4:30: rules[0].when.hours.between: expected two times, a start and an end, such as [\"22:00\", \"06:00\"]",
        ),
        (
            "{ hours = {} }",
            "4:18: rules[0].when.hours: the hours are empty: expected `between`, `on` or both",
        ),
        (
            "{ hours = { on = [\"mon\"], zone = \"Berlin\" } }",
            "4:41: rules[0].when.hours.zone: `Berlin` is no time zone: IANA names are such as `Europe/Berlin`",
        ),
        (
            "{ any = [{ path = \"/\" }, { not = { method = \"get\" } }] }",
            "4:52: rules[0].when.any[1].not.method: methods are case-sensitive, expected `GET` instead of `get`",
        ),
    ] {
        assert_eq!(limited(&format!("when = {when}")), problem, "{when}");
    }
}

#[test]
fn a_method_that_no_request_can_have() {
    for method in ["GET ", " GET", "GE T", "GET,T", "G\u{395}T", "GET\u{200b}", "GET/", "{GET}"] {
        let told = limited(&format!("when = {{ method = [\"POST\", \"{method}\"] }}"));
        assert!(told.starts_with("4:28: rules[0].when.method[1]: the method `"), "{told}");
        assert!(told.contains("` has a character that no method can have: expected"), "{told}");
    }
    assert!(limited("when = { method = \"GET\u{200b}\" }").contains("`GET\\u{200b}`"));
    for method in ["PROPFIND", "M-SEARCH", "purge"] {
        let text = format!("when = {{ method = \"{method}\" }}");
        let text =
            format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{text}\nlimits = [\"1/second\"]");
        let document = read_toml(&text).expect("it can be read");
        assert!(Policies::new(&document, &Environment::new()).is_ok(), "{method}");
    }
}

#[test]
fn a_host_that_is_none() {
    for host in [
        "a b",
        "http://example.com",
        "example.com/",
        "b\u{fc}cher.example",
        "2001:db8::1",
        "*.a b",
        " a",
    ] {
        let told = limited(&format!("when = {{ host = \"{host}\" }}"));
        let expected =
            format!("4:17: rules[0].when.host: the host pattern `{host}` is not a host: expected");
        assert!(told.starts_with(&expected), "{told}");
    }
}

/// One that is empty holds for every request, and its negation for none.
#[test]
fn a_condition_or_a_list_that_is_empty() {
    const EMPTY: &str =
        "the condition is empty and would hold for every request: expected a part such as `method`";
    const LIST: &str = "the list is empty, expected at least one";
    for (text, place, problem) in [
        ("when = {}", "4:8: rules[0].when", EMPTY),
        ("when = { not = {} }", "4:16: rules[0].when.not", EMPTY),
        ("when = { any = [] }", "4:16: rules[0].when.any", LIST),
        ("when = { method = \"PUT\", any = [] }", "4:32: rules[0].when.any", LIST),
        ("when = { any = [{}, { method = \"PUT\" }] }", "4:17: rules[0].when.any[0]", EMPTY),
        (
            "when = { hours = { between = [\"01:00\", \"02:00\"], on = [] } }",
            "4:55: rules[0].when.hours.on",
            LIST,
        ),
        ("when = { host = [] }", "4:17: rules[0].when.host", LIST),
        (
            "when = { header = {} }",
            "4:19: rules[0].when.header",
            "the table is empty, expected the name of a header",
        ),
        (
            "when = { method = \"PUT\", not = { claim = {} } }",
            "4:42: rules[0].when.not.claim",
            "the table is empty, expected the name of a claim",
        ),
        (
            "cases = [{ when = { any = [{ cookie = {} }] }, limits = [\"1/second\"] }]",
            "4:39: rules[0].cases[0].when.any[0].cookie",
            "the table is empty, expected the name of a cookie",
        ),
        ("cases = [{ when = {}, limits = [\"1/second\"] }]", "4:19: rules[0].cases[0].when", EMPTY),
        ("when = { any = [{ not = {} }] }", "4:25: rules[0].when.any[0].not", EMPTY),
        ("when = { network = [] }", "4:20: rules[0].when.network", LIST),
        ("count_if = []", "4:12: rules[0].count_if", LIST),
    ] {
        assert_eq!(limited(text), format!("{place}: {problem}"), "{text}");
    }
}

/// In JSON, `null` is a part that is left out.
#[test]
fn a_condition_of_nothing_but_null_is_empty() {
    for (when, path) in [
        (r#"{ "method": null }"#, "rules[0].when"),
        (r#"{ "method": "PUT", "not": { "path": null } }"#, "rules[0].when.not"),
        (r#"{ "any": [{ "host": null, "hours": null }] }"#, "rules[0].when.any[0]"),
    ] {
        let text = format!(
            r#"{{ "rules": [{{ "name": "a", "key": "ip", "limits": ["1/second"], "when": {when} }}] }}"#
        );
        let document = sluicegate_config::read_json(&text).expect("it can be read");
        let told = Policies::new(&document, &Environment::new()).unwrap_err().to_string();
        assert!(told.contains(&format!("{path}: the condition is empty")), "{when}: {told}");
    }
}

#[test]
fn values_that_never_occur() {
    for (text, problem) in [
        (
            "count_if = [99]",
            "4:13: rules[0].count_if[0]: 99 is not the status of a response, expected 200 to 599",
        ),
        // Informational ones, which no response ends with.
        (
            "count_if = [103]",
            "4:13: rules[0].count_if[0]: 103 is not the status of a response, expected 200 to 599",
        ),
        (
            "count_if = [401, 700]",
            "4:18: rules[0].count_if[1]: 700 is not the status of a response, expected 200 to 599",
        ),
        (
            "when = { header = { x = \" a\" } }",
            "4:25: rules[0].when.header.x: no header has such a value: expected one without spaces at its ends and \
             control characters",
        ),
    ] {
        assert_eq!(limited(text), problem, "{text}");
    }
}

#[test]
fn a_cost_that_is_none() {
    for (cost, problem) in [
        (
            "cost = { header = \"x\", query = \"y\" }",
            "4:8: rules[0].cost: a cost has one source: expected one of `header`, `query`, `body`, `tokens` and `call`",
        ),
        (
            "cost = { most = 5 }",
            "4:8: rules[0].cost: a cost has one source: expected one of `header`, `query`, `body`, `tokens` and `call`",
        ),
        (
            "cost = { tokens = \"all\", header = \"x\" }",
            "4:8: rules[0].cost: `tokens` is the whole cost, expected only `default` and `most` besides",
        ),
        (
            "cost = { tokens = \"all\", most = 0 }",
            "4:33: rules[0].cost.most: `most` is 0, expected at least 1",
        ),
        (
            "settle = { tokens = \"all\", header = \"x\" }",
            "4:10: rules[0].settle: a cost has one source: expected one of `header` and `tokens`",
        ),
        (
            "settle = { tokens = \"all\", scale = 2 }",
            "4:10: rules[0].settle: tokens are counted as they are: expected no `settle.scale`",
        ),
        (
            "settle = { tokens = \"all\" }\ncount_if = [200]",
            "4:10: rules[0].settle: tokens are counted as they are: expected no `count_if`",
        ),
        (
            "cost = 0",
            "4:8: rules[0].cost: with a cost of 0 nothing would be charged, expected at least 1",
        ),
        (
            "cost = { header = \"x\", least = 5, most = 3 }",
            "4:32: rules[0].cost.least: no cost is at least 5 and at most 3",
        ),
        (
            "cost = { query = \"x\", scale = 0, per = 0 }",
            "4:31: rules[0].cost.scale: `scale` is 0, expected at least 1\n\
             4:40: rules[0].cost.per: `per` is 0, expected at least 1",
        ),
        (
            "cost = { body = 0 }",
            "4:17: rules[0].cost.body: a cost for each 0 bytes would be infinite, expected at least 1",
        ),
        (
            "cost = { body = 1024, per = 2 }",
            "4:29: rules[0].cost.per: `body` already sets the bytes for a cost of 1, expected no `per`",
        ),
        (
            "cost = { call = \"by_path\" }",
            "4:17: rules[0].cost.call: the service provides no function for costs called `by_path`, expected \
             no name: it provides none",
        ),
        (
            "settle = { header = \"x\", scale = 0 }",
            "4:34: rules[0].settle.scale: `scale` is 0, expected at least 1",
        ),
        (
            "count_if = [401, 40]",
            "4:18: rules[0].count_if[1]: 40 is not the status of a response, expected 200 to 599",
        ),
        (
            "settle_at_end = true",
            "4:17: rules[0].settle_at_end: nothing is settled: expected `settle` or `count_if` as well",
        ),
        (
            "settle_at_most = 9",
            "4:18: rules[0].settle_at_most: nothing is settled: expected `settle` or `count_if` as well",
        ),
        (
            "settle = \"response\"\nsettle_at_most = 0",
            "5:18: rules[0].settle_at_most: no request would cost anything: expected at least 1",
        ),
    ] {
        assert_eq!(limited(cost), problem, "{cost}");
    }
}

#[test]
fn a_case_that_is_none() {
    for (case, problem) in [
        (
            "{ limits = [\"1/second\"] }",
            "4:10: rules[0].cases[0]: the case always applies, expected `when`, `while` or both",
        ),
        (
            "{ while = { has_capacity = \"a\", cpu = \"80%\" }, limits = [\"1/second\"] }",
            "4:20: rules[0].cases[0].while: `while` takes exactly one of `has_capacity`, `in_flight` and \
             `cpu`",
        ),
        (
            "{ while = { has_capacity = \"a\" }, limits = [\"1/second\"] }",
            "4:37: rules[0].cases[0].while.has_capacity: the service provides no function for capacity called `a`, expected \
             no name: it provides none",
        ),
        (
            "{ while = { in_flight = 5 }, limits = [\"1/second\"] }",
            "4:34: rules[0].cases[0].while.in_flight: the service does not count requests in flight, expected \
             `Environment::in_flight` in its code",
        ),
        (
            "{ while = { in_flight = 0 }, limits = [\"1/second\"] }",
            "4:34: rules[0].cases[0].while.in_flight: there are never fewer than 0 requests, expected at \
             least 1",
        ),
        (
            "{ while = { cpu = \"101%\" }, limits = [] }",
            "4:28: rules[0].cases[0].while.cpu: `101%` is not a percentage, expected 1% to 100%, such as `80%`\n\
             4:47: rules[0].cases[0].limits: the list has no limits, expected at least one",
        ),
    ] {
        assert_eq!(limited(&format!("cases = [{case}]")), problem, "{case}");
    }
}

#[test]
fn a_rejection_that_is_none() {
    assert_eq!(
        limited("reject = { redirect = \"/a b\", status = 200 }"),
        "4:23: rules[0].reject.redirect: \"/a b\" is not a URI, expected visible ASCII characters\n\
         4:40: rules[0].reject.status: 200 is not a redirection, expected 302, 303, 307 or 308"
    );
}

#[test]
fn a_case_that_is_never_reached() {
    let told = limited(
        "cases = [{ when = { method = \"PUT\" }, limits = [\"1/second\"] }, \
         { name = \"other\", when = { method = \"PUT\" }, limits = [\"2/second\"] }]",
    );
    let expected = "rules[0].cases[1]: this is never reached: the same condition comes earlier, and the first that holds \
                    decides";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn an_exception_that_leaves_nothing() {
    let told = |when: &str| limited(&format!("when = {{ {when} }}"));
    for when in [
        "not = { path = \"/*\" }",
        "not = { network = [\"0.0.0.0/0\", \"::/0\"] }",
        "method = \"PUT\", not = { method = \"PUT\" }",
        "method = \"PUT\", path = \"/a\", not = { method = [\"POST\", \"PUT\"] }",
        "path = [\"/a\", \"/b\"], not = { path = [\"/c\", \"/b\", \"/a\"] }",
        "host = \"a\", claim = { plan = true }, not = { claim = { plan = true } }",
        "header = { x = \"1\", y = \"2\" }, not = { any = [{ method = \"PUT\" }, { header = { y = \"2\" } }] }",
    ] {
        let told = told(when);
        assert!(told.contains("not: this excludes every request that is left"), "{when}: {told}");
    }
}

#[test]
fn an_exception_that_leaves_something_is_none_of_them() {
    for when in [
        r#""path": "/a/*", "not": { "path": "/a/b" }"#,
        r#""path": ["/a", "/b"], "not": { "path": "/a" }"#,
        r#""path": "/a", "not": { "path": "/a", "method": "PUT" }"#,
        // Nothing but HEAD.
        r#""method": "GET", "not": { "method": "GET" }"#,
        r#""header": { "x": true }, "not": { "header": { "x": "1" } }"#,
        r#""not": { "network": "0.0.0.0/0" }"#,
        r#""method": "PUT", "not": { "not": { "method": "PUT" } }"#,
    ] {
        let text = format!(
            r#"{{ "rules": [{{ "name": "a", "key": "ip", "limits": ["1/second"], "when": {{ {when} }} }}] }}"#
        );
        let document = sluicegate_config::read_json(&text).expect("it can be read");
        let made = Policies::new(&document, &Environment::new());
        assert!(made.is_ok(), "{when}: {made:?}");
    }
}

/// In HTTP/2 the host is no header field, so a client would choose whether it is there.
#[test]
fn a_header_that_only_one_version_of_http_has() {
    let expected =
        "requests of HTTP/2 have no such header: expected `host`, which reads it in every version";
    let condition = limited("when = { header = { Host = \"a.example\" } }");
    assert_eq!(condition, format!("4:28: rules[0].when.header.Host: {expected}"));
    let key = problems(
        "[[rules]]\nname = \"a\"\nkey = [\"ip\", { header = \"host\" }]\nlimits = [\"1/second\"]",
    );
    assert_eq!(key, format!("3:25: rules[0].key[1].header: {expected}"));
}
