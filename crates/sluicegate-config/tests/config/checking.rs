//! Reports about a file without running anything.

use std::fs;
use std::path::PathBuf;

use sluicegate_config::{
    Environment, Policies, PolicyError, Report, check, check_change, read_toml,
};
use sluicegate_core::rule::KnownLimits as _;
use tempfile::TempDir;

use crate::writer;

const EVERYTHING: &str = include_str!("../documents/everything.toml");

struct Files(TempDir);

impl Files {
    /// A directory with a database of places.
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let database = writer::Writer::new("Test-Country").country("192.0.2.0/24", "DE");
        fs::write(directory.path().join("countries.mmdb"), database.write()).expect("a file");
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn check(&self, name: &str, text: &str) -> Result<Report, PolicyError> {
        fs::write(self.path(name), text).expect("a file");
        check(self.path(name))
    }

    /// The report, without the directory.
    fn told(&self, name: &str, text: &str) -> String {
        let directory = format!("{}/", self.0.path().display());
        let told = match self.check(name, text) {
            Ok(report) => report.to_string(),
            Err(problems) => problems.to_string(),
        };
        told.replace(&directory, "")
    }
}

#[test]
fn a_report_says_all_that_stands_in_the_file() {
    assert_eq!(
        Files::new().told("policies.toml", EVERYTHING),
        include_str!("../documents/everything.txt").trim_end()
    );
}

#[test]
fn the_same_in_json_is_the_same_report() {
    let files = Files::new();
    let without_places = |report: String| -> Vec<String> {
        let body = report.split("\n\nwarnings:").next().unwrap_or_default();
        body.lines().skip(1).map(str::to_owned).collect()
    };
    let json = files.told("policies.json", include_str!("../documents/everything.json"));
    assert_eq!(without_places(json), without_places(files.told("policies.toml", EVERYTHING)));
}

/// The report only says what the file needs, and what a client can do.
#[test]
fn a_file_of_a_whole_product_is_sound() {
    let files = Files::new();
    let report =
        files.check("sample.toml", include_str!("../documents/sample.toml")).expect("a report");
    let limits = |rule: usize| -> Vec<_> {
        let rule = &report.rules[rule];
        rule.limits().map(|(_, limit)| limit.to_string()).collect()
    };
    assert_eq!(
        limits(0)[..4],
        [
            "20/second named \"api/second\" carried",
            "20000 per 30 days named \"api/30 days\" carried",
            "10/second named \"api/second\" carried",
            "20000 per 30 days named \"api/30 days\" carried",
        ]
    );
    assert_eq!(
        limits(1),
        [
            "100/minute burst 20 soft 15 named \"login\" carried",
            "100/minute burst 22 soft 16 ban 5 minutes after 3 in 1 minute named \"login-trial\" carried shadow",
        ]
    );
    assert_eq!(limits(2), ["1000/minute named \"everybody\" carried shadow"]);
}

#[test]
fn what_stands_in_a_report_can_be_asked() {
    let report = Files::new().check("policies.toml", EVERYTHING).expect("a report");
    let names: Vec<_> = report.rules.iter().map(|rule| rule.name()).collect();
    assert_eq!(names[..3], ["api", "customers", "tokens"]);
    let tokens = &report.rules[2];
    let limits: Vec<_> =
        tokens.limits().map(|(of, limit)| (of, limit.name().to_string())).collect();
    assert_eq!(limits, [("", "tokens".to_owned()), ("", "tokens-hour".to_owned())]);
    assert!(report.provided.iter().any(|name| name.contains("`database`")));
    assert!(report.warnings.iter().all(|warning| warning.line().is_some()));
    assert!(report.file.ends_with("policies.toml"));
}

/// What each limit does with new keys when the store is full, whether the file says it or not.
#[test]
fn a_report_says_what_each_limit_does_when_the_store_is_full() {
    let told = |limits: &str| {
        let text = format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [{limits}]");
        Files::new().told("policies.toml", &text)
    };
    let report = told(
        "\"5/second\", \"10/hour\", { rate = \"7/minute\", when_full = \"refuse\" }, \
         \"9/day when-full admit\", { rate = \"2/second\", name = \"b\", when_full = \"together\" }",
    );
    let words = "when the store is full: `a/hour` and `b` count new keys together; `a/day` and `a/second` do \
                 not count new keys; `a/minute` refuses new keys";
    assert!(report.contains(words), "{report}");
    let problem = told("\"log 3000000/day\"");
    assert!(problem.contains("more than 65536 stamps for each key"), "{problem}");
    assert!(!told("\"log 3000000/day resolution 1 minute\"").contains("stamps"));
    assert!(told("{ rate = \"5/second\", when_full = \"never\" }").contains("`together`"));
}

#[test]
fn what_is_wrong_is_told_with_the_file() {
    let files = Files::new();
    assert_eq!(
        files.told("policies.toml", "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"often\"]"),
        "policies.toml:4:11: rules[0].limits[0]: in `often`: the algorithm is not known: use leaky, fixed, log, \
         sliding or concurrent, or none for a token bucket"
    );
    assert_eq!(
        files.told("policies.json", "{\"rules\": 5}"),
        "policies.json:1:11: rules: found the integer `5`, expected a list"
    );
    assert_eq!(
        files.told("policies.ini", ""),
        "policies.ini: the file's name has to end in .toml or .json, or the code has to name its format with \
         `PolicyFile::format`"
    );
    let missing = check(files.path("missing.toml")).expect_err("there is no such file").to_string();
    assert!(missing.contains("missing.toml: the file cannot be read: "), "{missing}");
}

#[test]
fn a_file_is_checked_against_the_one_before() {
    let files = Files::new();
    let text =
        |limit: &str| format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"{limit}\"]");
    files.check("before.toml", &text("10/minute")).expect("a report");
    let report = files.check("after.toml", &text("10/hour")).expect("a report");
    assert!(report.changes.is_none());
    let report = check_change(files.path("before.toml"), files.path("after.toml"));
    let report = report.expect("a report");
    assert_eq!(report.changes.as_ref().expect("a change").limits.len(), 1);
    assert!(
        report.to_string().ends_with(
            "10/hour named \"a\" carried (another period: what was spent is not counted)"
        ),
        "{report}"
    );
}

/// A window of the same length counts on when its count changes. What a reload would forget, it says.
#[test]
fn a_report_says_when_a_reload_would_forget_what_was_spent() {
    let forgets = "(what was spent is not counted)";
    for (before, after, is_told) in [
        ("fixed 100/minute", "fixed 200/minute", false),
        ("5/minute", "8/minute burst 2", false),
        ("sliding 5/minute", "sliding 8/minute", false),
        ("5/minute", "fixed 5/minute", true),
        ("sliding 5/minute", "log 5/minute", true),
    ] {
        let files = Files::new();
        let text =
            |limit: &str| format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"{limit}\"]");
        files.check("before.toml", &text(before)).expect("a report");
        files.check("after.toml", &text(after)).expect("a report");
        let report = check_change(files.path("before.toml"), files.path("after.toml"));
        let report = report.expect("a report").to_string();
        assert_eq!(report.ends_with(forgets), is_told, "{before} -> {after}: {report}");
    }
}

fn warnings(text: &str) -> Vec<String> {
    let report = Files::new().check("policies.toml", text).expect("a report");
    report.warnings.iter().map(ToString::to_string).collect()
}

fn rule(rest: &str) -> String {
    format!("[[rules]]\nname = \"a\"\nlimits = [\"5/second\"]\n{rest}\n")
}

#[test]
fn a_pattern_of_another_router_is_warned_of() {
    for (when, place, segment) in [
        ("{ path = \"/api/:id\" }", "when.path", ":id"),
        ("{ path = [\"/a\", \"/api/<id>/x\"] }", "when.path[1]", "<id>"),
        ("{ route = \"/api/[0-9]+\" }", "when.route", "[0-9]+"),
        ("{ any = [{ not = { route = \"/a$\" } }] }", "when.any[0].not.route", "a$"),
    ] {
        let told = warnings(&rule(&format!("key = {{ claim = \"customer\" }}\nwhen = {when}")));
        assert_eq!(told.len(), 1, "{told:?}");
        let expected = format!("rules[0].{place}: `{segment}` is compared literally");
        assert!(told[0].contains(&expected), "{told:?}");
    }
    let own = "key = { claim = \"customer\" }\nwhen = { path = [\"/api/{id}\", \"/api/*\", \"/v1/a:run\"] }";
    assert_eq!(warnings(&rule(own)), [""; 0]);
}

#[test]
fn what_may_not_be_meant_is_warned_of() {
    assert_eq!(warnings(&rule("key = { claim = \"customer\" }")), [""; 0]);
    for (text, warning) in [
        ("rules = []".to_owned(), "1:9: rules: there is no rule: nothing is limited"),
        (
            rule("key = [\"route\", { header = \"x-api-key\" }]"),
            "4:17: rules[0].key[1]: rule `a` is keyed by a header (`x-api-key`) that the client may invent: \
             each new one has a fresh budget, unless something else rejects those that were made up",
        ),
        (
            rule("key = \"ip\""),
            "1:1: rules[0]: the client's address is that of the connection's other end: behind a proxy, say so \
             by `proxies`, or all clients have the proxy's",
        ),
        (
            rule("key = \"global\"\ncost = 6"),
            "5:8: rules[0].cost: nothing is ever admitted by `a`, which holds 5 at most: a request costs 6 at \
             least",
        ),
        (
            rule("key = \"global\"\ncost = { body = 1_000, default = 64 }"),
            "5:34: rules[0].cost.default: `a` never admits a request without the value: by `default` it costs 64, and \
             the limit holds 5 at most",
        ),
        (
            rule("key = \"global\"\nwhen = { not = { path = \"/free\" } }"),
            "5:25: rules[0].when.not.path: a path matches in every way that it may be read, so a client may \
             spell another one to be among these: where the framework routes, make exceptions by `route`",
        ),
        (
            rule("key = \"global\"\ncost = { header = \"x-cost\" }"),
            "5:8: rules[0].cost: the client says what its request costs, and gains by saying less: `settle` it \
             by what the response says, or check it elsewhere",
        ),
        (
            "customers = { acme = \"a\" }\n[tiers.a]\nunlimited = true\n\
             [[rules]]\nname = \"a\"\nkey = \"global\"\ntiers = { by = { claim = \"plan\" }, default = \"a\" }"
                .to_owned(),
            "1:13: customers: no rule chooses tiers by `customer`",
        ),
        (
            format!("[tiers.a]\nunlimited = true\n{}", rule("key = \"global\"")),
            "1:1: tiers.a: no rule goes by tiers",
        ),
        (
            rule(
                "key = \"global\"\ncases = [{ while = { cpu = \"50%\" }, limits = [\"9/minute named x\"] }, \
                 { while = { cpu = \"80%\" }, limits = [\"9/hour named x\"] }]",
            ),
            "2:8: rules[0].name: the limits called `x` are of one time and of another: give those that do \
             not belong together a `name`",
        ),
        (
            (0..17).map(|i| format!("[[rules]]\nname = \"{i}\"\nlimits = [\"5/second\"]\nkey = \"global\"\nwhen = {{ method = \"GET\" }}\n")).collect(),
            "rules: a request to which the rules `0`, `1` and others apply is charged to 17 limits, and is answered with an error beyond \
             16: let no request meet so many",
        ),
    ] {
        let warnings = warnings(&text);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].ends_with(warning), "{warnings:?}");
    }
}

#[test]
fn whoever_may_leave_a_key_out_is_told_of() {
    let warnings = warnings(&rule("key = { optional = { cookie = \"session\" } }"));
    assert_eq!(
        warnings[0],
        "4:7: rules[0].key: a client that leaves it out is not limited by rule `a`"
    );
    assert!(warnings[1].contains("keyed by a cookie (`session`)"), "{warnings:?}");
}

#[test]
fn what_is_never_reloaded_carries_only_what_is_shared() {
    const FILE: &str = "[[rules]]\nname = \"plain\"\nkey = \"ip\"\nlimits = [\"2/minute\", \"9/hour\"]\n\
        [[rules]]\nname = \"named\"\nkey = \"ip\"\nlimits = [{ rate = \"3/minute\", name = \"own\" }]\n\
        [[rules]]\nname = \"cased\"\nkey = \"ip\"\nlimits = [\"4/minute\"]\n\
        cases = [{ when = { method = \"PUT\" }, limits = [\"5/minute\"] }]\n";
    let document = read_toml(FILE).expect("a document");
    let limits = |environment: &Environment| {
        let mut limits = Vec::new();
        let policies = Policies::new(&document, environment).expect("policies");
        policies.each_limit(&mut |limit| limits.push(limit.to_string()));
        limits
    };
    let as_usual = limits(&Environment::new());
    assert!(as_usual.iter().all(|limit| limit.ends_with(" carried")), "{as_usual:?}");
    let alone = limits(&Environment::new().never_reloaded());
    let plain = as_usual[..3].iter().map(|limit| limit.replace(" carried", ""));
    assert_eq!((&alone[..3], &alone[3..]), (&plain.collect::<Vec<_>>()[..], &as_usual[3..]));
}

/// By rows that do not outlive a change of numbers, these would be two.
#[test]
fn what_is_never_reloaded_has_the_errors_of_other_files() {
    const ROW: &str = "{ rate = \"6/minute\", name = \"api/minute\" }";
    let rule = |name: &str, limits: &str| {
        format!("[[rules]]\nname = \"{name}\"\nkey = \"ip\"\nlimits = [{limits}]\n")
    };
    for file in [
        rule("api", &format!("\"5/minute\", {ROW}")),
        rule("api", "\"5/minute\"") + &rule("other", ROW),
    ] {
        let document = read_toml(&file).expect("a document");
        let error = |environment: &Environment| {
            let policies = Policies::new(&document, environment);
            policies.expect_err("two limits of one row").to_string()
        };
        let expected = error(&Environment::new());
        assert_eq!(error(&Environment::new().never_reloaded()), expected);
        assert!(expected.contains("api/minute"), "{expected}");
    }
}
