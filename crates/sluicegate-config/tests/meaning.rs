//! What is said of a document that can be read, and makes no sense.

use sluicegate_config::{Document, Environment, Policies, PolicyError, read_json, read_toml};

/// What is wrong with a document in TOML. The same in JSON has to be told in the same words, and to have
/// a place in the text.
fn problems(toml: &str) -> String {
    let problems = compile(read_toml(toml));
    let value: serde_json::Value = toml::from_str(toml).expect("TOML");
    let json = serde_json::to_string_pretty(&value).expect("JSON");
    let in_json = compile(read_json(&json));
    let told = |problems: &PolicyError| {
        let told = |problem: &sluicegate_config::Diagnostic| {
            format!("{}: {}", problem.path(), problem.message())
        };
        let mut told: Vec<_> = problems.iter().map(told).collect();
        told.sort();
        told
    };
    assert_eq!(told(&in_json), told(&problems));
    assert!(in_json.iter().all(|problem| problem.line() > Some(1)), "{in_json}");
    problems.to_string()
}

fn compile(document: Result<Document, PolicyError>) -> PolicyError {
    let document = document.expect("it can be read");
    Policies::new(&document, &Environment::new()).expect_err("something is wrong")
}

/// What is wrong with a rule that lacks nothing but limits, and has this besides, from the fourth line on.
fn rule(rest: &str) -> String {
    problems(&format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rest}\n"))
}

/// The same for a rule that has a limit.
fn limited(rest: &str) -> String {
    rule(&format!("{rest}\nlimits = [\"5/second\"]"))
}

#[test]
fn a_limit_that_is_none() {
    for (limits, problem) in [
        (
            "[\"5/fortnight\"]",
            "4:11: rules[0].limits[0]: in `5/fortnight`: the unit of time is not known: use us, ms, s, min, \
             h, d, w, month or year, or their names",
        ),
        (
            "[\"1/second\", { rate = \"0/minute\" }]",
            "4:32: rules[0].limits[1].rate: in `0/minute`: the count is 0: nothing would ever be admitted",
        ),
        (
            "[{ rate = \"leaky 5/minute\", burst = 7 }]",
            "4:46: rules[0].limits[0].burst: a burst belongs to a token bucket",
        ),
        (
            "[{ rate = \"5/minute\", soft = 7 }]",
            "4:39: rules[0].limits[0].soft: the soft limit is not below the most that the limit admits at once",
        ),
        (
            "[{ rate = \"5/minute\", soft = \"120%\" }]",
            "4:39: rules[0].limits[0].soft: `120%` is not a percentage, expected 1% to 100%, such as `80%`",
        ),
        (
            "[{ rate = \"5/minute\", over = \"ten\" }]",
            "4:39: rules[0].limits[0].over: `ten` is not a percentage, expected 1% to 100%, such as `80%`",
        ),
        (
            "[{ rate = \"5/minute\", ban = \"5 fortnights\" }]",
            "4:38: rules[0].limits[0].ban: `5 fortnights` is not a duration, expected a number and a unit, such as \
             `90 seconds` or `5 minutes`",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour soft 3\" } }]",
            "4:46: rules[0].limits[0].ban.for: `1 hour soft 3` is not a duration, expected a number and a unit, such \
             as `90 seconds` or `5 minutes`",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour\", after = 3 } }]",
            "4:38: rules[0].limits[0].ban: `after` needs a time: expected `within` as well",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour\", within = \"1 hour\" } }]",
            "4:38: rules[0].limits[0].ban: `within` needs a number: expected `after` as well",
        ),
        (
            "[{ rate = \"5/minute\", name = \"\" }]",
            "4:39: rules[0].limits[0].name: the name is empty",
        ),
        ("[]", "4:10: rules[0].limits: the list has no limits, expected at least one"),
    ] {
        assert_eq!(rule(&format!("limits = {limits}")), problem, "{limits}");
    }
}

#[test]
fn a_rule_without_limits() {
    assert_eq!(rule(""), "1:1: rules[0].limits: the list has no limits, expected at least one");
}

#[test]
fn two_limits_of_one_name() {
    assert_eq!(
        rule("limits = [\"5/day\", \"5/second\", \"9 per second burst 20\"]"),
        "4:32: rules[0].limits[2]: two limits of the list are called `a/second`, expected a `name` for one of \
         them"
    );
    assert_eq!(
        rule("limits = [\"5/second named x\", { rate = \"9/day\", name = \"x\" }]"),
        "4:31: rules[0].limits[1]: two limits of the list are called `x`, expected a `name` for one of them"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second named b\"]\n\
             [[rules]]\nname = \"b\"\nkey = \"ip\"\nlimits = [\"1/second\"]"
        ),
        "6:8: rules[1].name: a limit of another rule is also called `b`, expected a unique name"
    );
}

#[test]
fn limits_of_one_name_and_two_algorithms() {
    assert_eq!(
        rule(
            "limits = [\"5/second\"]\ncases = [{ while = { cpu = \"80%\" }, limits = [\"fixed 9/second\"] }]"
        ),
        "2:8: rules[0].name: the limits called `a` are of two algorithms and cannot share a budget: expected one algorithm, or a `name` for each"
    );
}

#[test]
fn a_rule_that_serves_less_beside_others() {
    let other = "[[rules]]\nname = \"b\"\nkey = \"ip\"\nlimits = [\"1/second\"]";
    assert_eq!(
        problems(&format!(
            "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second\"]\nreject = \"degrade\"\n{other}"
        )),
        "5:10: rules[0].reject: a degraded request is charged by no rule, so it would bypass the others: expected this to be the only rule of the file"
    );
}

#[test]
fn a_name_that_limits_cannot_have() {
    assert_eq!(
        problems("[[rules]]\nname = \"\"\nkey = \"ip\"\nlimits = [\"1/second\"]"),
        "2:8: rules[0].name: the name is empty"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a name that nobody could remember\"\nkey = \"ip\"\nlimits = [\"1/second\"]"
        ),
        "2:8: rules[0].name: the name is longer than 31 bytes"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a name that is not too long\"\nkey = \"ip\"\n\
             limits = [\"1 per day\", \"1/second\"]"
        ),
        "4:24: rules[0].limits[1]: a limit cannot be called `a name that is not too long/second`: the name is \
         longer than 31 bytes"
    );
}

#[test]
fn two_rules_of_one_name() {
    let twice = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second\"]\n".repeat(2);
    assert_eq!(
        problems(&twice),
        "6:8: rules[1].name: another rule is also called `a`, expected a unique name"
    );
}

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
            "4:35: rules[0].when.network[1]: the network `10.0.0.0/33` has a prefix length that is no number \
             from 1 to 32",
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
            "{ any = [{}, { not = { method = \"get\" } }] }",
            "4:40: rules[0].when.any[1].not.method: methods are case-sensitive, expected `GET` instead of `get`",
        ),
    ] {
        assert_eq!(limited(&format!("when = {when}")), problem, "{when}");
    }
}

#[test]
fn a_cost_that_is_none() {
    for (cost, problem) in [
        (
            "cost = { header = \"x\", query = \"y\" }",
            "4:8: rules[0].cost: a cost has one source: expected one of `header`, `query`, `body` and `call`",
        ),
        (
            "cost = { most = 5 }",
            "4:8: rules[0].cost: a cost has one source: expected one of `header`, `query`, `body` and `call`",
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
            "4:18: rules[0].count_if[1]: 40 is not a status, expected 100 to 999",
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
fn what_stands_around_the_rules() {
    for (text, problem) in [
        (
            "time_zone = \"Europe/Berlinn\"",
            "1:13: time_zone: `Europe/Berlinn` is no time zone: IANA names are such as `Europe/Berlin`",
        ),
        (
            "proxies = { trusted = [\"10.0.0.0/8\", \"nginx\"], header = \"x y\" }",
            "1:38: proxies.trusted[1]: the trusted proxy `nginx` is neither an address nor a network such as `10.0.0.0/8`\n\
             1:57: proxies.header: `x y` is not the name of a header, expected a name such as `x-api-key`",
        ),
    ] {
        assert_eq!(problems(text), problem, "{text}");
    }
    let missing = problems("geoip = { database = \"nowhere/countries.mmdb\" }");
    let start =
        "1:22: geoip.database: the GeoIP database `nowhere/countries.mmdb` cannot be read: ";
    assert!(missing.starts_with(start), "{missing}");
}

#[test]
fn tiers_that_do_not_fit_together() {
    const TIERS: &str =
        "tiers = { free = { limits = [\"1/second\"] }, paid = { limits = [\"9/second\"] } }\n";
    let rule =
        |rest: &str| problems(&format!("{TIERS}[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rest}\n"));
    for (rest, problem) in [
        (
            "tiers = { by = { claim = \"plan\" }, default = \"fre\" }",
            "5:46: rules[0].tiers.default: there is no tier `fre`, expected `free` or `paid`",
        ),
        (
            "tiers = { by = { header = \"x-plan\" }, default = \"free\" }",
            "5:16: rules[0].tiers.by: a tier must come from a value that the service has verified, because a client can choose all others: expected { claim = \"..\" } or { const = \"..\" }",
        ),
        (
            "tiers = { default = \"free\" }",
            "5:9: rules[0].tiers: the source of the tier is missing: expected one of `by` and `customer`",
        ),
        (
            "tiers = { by = { claim = \"plan\" }, default = \"free\" }\nlimits = [\"1/second\"]",
            "6:10: rules[0].limits: `tiers` sets the limits of every request, with `default` for unknown ones: expected no `limits` beside it",
        ),
    ] {
        assert_eq!(rule(rest), problem, "{rest}");
    }
    for (text, problem) in [
        (
            "tiers = { a = {} }",
            "1:15: tiers.a: the tier has no limits, expected `limits`, or `unlimited = true`",
        ),
        (
            "tiers = { a = { limits = [\"1/second\"], unlimited = true } }",
            "1:15: tiers.a: the tier has limits and is unlimited: expected one of the two",
        ),
        (
            "tiers = { a = { limits = [\"1/aeon\"] } }",
            "1:27: tiers.a.limits[0]: in `1/aeon`: the unit of time is not known: use us, ms, s, min, h, d, w, \
             month or year, or their names",
        ),
        (
            "customers = { acme = \"gold\" }\ntiers = { a = { unlimited = true } }",
            "1:22: customers.acme: there is no tier `gold`, expected `a`",
        ),
    ] {
        assert_eq!(problems(text), problem, "{text}");
    }
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_text() {
    let told = problems(
        "time_zone = \"Nowhere\"\n\
         [[rules]]\nname = \"a\"\nkey = { header = \"x y\" }\nlimits = [\"1/aeon\", \"2/second brust 5\"]\n\
         when = { method = \"get\" }\ncost = 0\n",
    );
    let places: Vec<_> =
        told.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(places, ["1:13", "4:18", "5:11", "5:21", "6:19", "7:8"]);
}

#[test]
fn in_json_a_problem_has_its_own_place() {
    let json = "{\n\t\"rules\": [{\n\t\t\"name\": \"a\", \"key\": \"ip\",\n\t\t\"limits\": [\"5/second\", {\"rate\": \"5/aeon\"}],\n\t\t\"when\": {\"not\": {\"hours\": {\"on\": []}}}\n\t}]\n}";
    assert_eq!(
        compile(read_json(json)).in_file("policies.json").to_string(),
        "policies.json:4:35: rules[0].limits[1].rate: in `5/aeon`: the unit of time is not known: use us, ms, \
         s, min, h, d, w, month or year, or their names\n\
         policies.json:5:29: rules[0].when.not.hours: the hours are empty: expected `between`, `on` or both"
    );
}

#[test]
fn rules_that_are_too_many_for_every_request() {
    let rule =
        |at: u32| format!("[[rules]]\nname = \"r{at}\"\nkey = \"ip\"\nlimits = [\"5/hour\"]\n");
    let sixteen: String = (0..16).map(rule).collect();
    let document = read_toml(&sixteen).expect("it can be read");
    Policies::new(&document, &Environment::new()).expect("as many limits as a charge holds");
    let some = format!("{sixteen}{}when = {{ path = \"/x\" }}", rule(16));
    let document = read_toml(&some).expect("it can be read");
    Policies::new(&document, &Environment::new()).expect("no more for every request");
    let problem =
        problems(&format!("version = 1\n{sixteen}{}", rule(16)).replace("version = 1", ""));
    assert!(problem.contains("rules: every request is charged by at least 17 limits"), "{problem}");
}
