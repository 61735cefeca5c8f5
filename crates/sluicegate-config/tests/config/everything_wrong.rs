//! Every error in a file is reported in one round, whatever kind of error it is.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use sluicegate_config::{Environment, Policies, PolicyError, read_json, read_toml};

fn toml(text: &str) -> Result<(), PolicyError> {
    Policies::new(&read_toml(text)?, &Environment::new()).map(drop)
}

fn json(text: &str) -> Result<(), PolicyError> {
    Policies::new(&read_json(text)?, &Environment::new()).map(drop)
}

#[test]
fn shapes_and_meanings_are_told_in_one_round() {
    let text = "time_zone = 5
colour = \"red\"
[proxies]
header = \"x y\"
[tiers.free]
limits = \"5/second\"
[tiers.paid]
limits = [\"10/fortnight\"]
[customers]
acme = \"gold\"
other = 7
[[rules]]
key = \"ipp\"
limits = [5, { rate = \"5/second\", brust = 5 }, \"6/lunch\"]
[[rules]]
name = \"a\"
key = { header = 5 }
limits = [\"5/second\"]
count_if = [401, 70000, \"x\"]
when = { hours = { on = [\"monday\", 3] }, method = \"post\" }
[[rules]]
name = \"a\"
limits = []
reject = \"blok\"
cost = { header = \"x\", most = -1 }
";
    let problems = toml(text).expect_err("nearly everything is wrong").to_string();
    let expected = [
        "1:13: time_zone: found the integer `5`, expected a text",
        "2:1: colour: `colour` is not known here, expected `$schema`, `time_zone`, `proxies`, `nat64`, `geoip`, `hold_until`, `dialect`, `throttle`, \
         `listen`, `upstream`, `tiers`, `customers` or `rules`",
        "3:1: proxies: `trusted` is missing",
        "6:10: tiers.free.limits: found the text \"5/second\", expected a list",
        "8:11: tiers.paid.limits[0]: in `10/fortnight`: the unit of time is not known: use us, ms, s, min, h, d, \
         w, month or year, or their names",
        "10:8: customers.acme: there is no tier `gold`, expected `free` or `paid`",
        "11:9: customers.other: found the integer `7`, expected a text",
        "12:1: rules[0]: `name` is missing",
        "13:7: rules[0].key: `ipp` is not known here; did you mean `ip`? expected `ip`, `route`, `method`, \
         `path`, `host`, `global`, `country`, `region`, `{ header = \"..\" }`, `{ cookie = \"..\" }`, \
         `{ query = \"..\" }` or `{ claim = \"..\" }`",
        "14:11: rules[0].limits[0]: found the integer `5`, expected a limit such as \"100/minute burst 20\" or \
         { rate = \"100/minute\", burst = 20 }",
        "14:35: rules[0].limits[1].brust: `brust` is not known here; did you mean `burst`? expected `rate`, \
         `name`, `burst`, `soft`, `over`, `ban`, `shadow` or \
         `when_full`",
        "14:48: rules[0].limits[2]: in `6/lunch`: the unit of time is not known: use us, ms, s, min, h, d, w, \
         month or year, or their names",
        "17:18: rules[1].key.header: found the integer `5`, expected a text",
        "19:18: rules[1].count_if[1]: found the integer `70000`, expected a whole number from 0 to 65535",
        "19:25: rules[1].count_if[2]: found the text \"x\", expected a whole number from 0 to 65535",
        "20:26: rules[1].when.hours.on[0]: `monday` is not known here; did you mean `mon`? expected `mon`, \
         `tue`, `wed`, `thu`, `fri`, `sat` or `sun`",
        "20:36: rules[1].when.hours.on[1]: found the integer `3`, expected a text",
        "20:51: rules[1].when.method: methods are case-sensitive, expected `POST` instead of `post`",
        "21:1: rules[2]: `key` is missing",
        "22:8: rules[2].name: another rule is also called `a`, expected a unique name",
        "24:10: rules[2].reject: `blok` is not known here; did you mean `block`? expected `block`, `shadow` or \
         `degrade`",
        "25:31: rules[2].cost.most: found the integer `-1`, expected a whole number, not negative",
    ];
    for line in expected {
        assert!(problems.lines().any(|told| told == line), "{line}\nis not in\n{problems}");
    }
}

/// Values for the last two lines of a rule, right and wrong in form and in meaning.
const LINES: [&str; 16] = [
    "key = \"ip\"\nlimits = [\"5/second\"]",
    "key = \"ip\"\nlimits = \"5/second\"",
    "key = \"ip\"\nlimits = [\"5/second\", 7]",
    "key = \"ip\"\nlimits = [\"5/fortnight\"]",
    "key = \"ip\"\nlimits = [{ burst = 7 }]",
    "key = \"ip\"\nlimits = [{ rate = \"5/second\", burst = [] }]",
    "key = \"ip\"\nlimts = [\"5/second\"]",
    "key = \"ip\"\n",
    "limits = [\"5/second\"]\n",
    "key = 7\nlimits = [\"5/second\"]",
    "key = {}\nlimits = [\"5/second\"]",
    "key = { claim = \"a\", header = \"b\" }\nlimits = [\"5/second\"]",
    "key = [\"ip\", \"ipp\"]\nlimits = [\"5/second\"]",
    "key = \"ip\"\ncases = [{ limits = [\"5/second\"] }, 7, { while = { cpu = true } }]",
    "key = { header = \"a b\" }\nlimits = [\"0/second\"]",
    "key = \"ip\"\ntiers = { by = \"ip\" }",
];

fn rules(chosen: &[usize]) -> String {
    let rules = chosen.iter().enumerate().map(|(at, line)| {
        let line = LINES[*line];
        format!("[[rules]]\nname = \"r{at}\"\n{line}\n")
    });
    rules.collect()
}

fn told(text: &str) -> BTreeSet<String> {
    match toml(text) {
        Ok(()) => BTreeSet::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_wrong_in_one_place_hides_nothing_in_another(
        chosen in prop::collection::vec(0..LINES.len(), 1..8),
    ) {
        let mut alone = BTreeSet::new();
        for at in 0..chosen.len() {
            let only = chosen.iter().enumerate().map(|(i, line)| if i == at { *line } else { 0 });
            alone.extend(told(&rules(&only.collect::<Vec<_>>())));
        }
        prop_assert_eq!(told(&rules(&chosen)), alone);
    }

    #[test]
    fn whatever_the_values_are_reading_comes_to_an_end(text in "[\\[\\]{}a-c\"=,.1\n# -]{0,80}") {
        let _ = toml(&text);
        let _ = toml(&format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{text}"));
        let _ = json(&text);
    }
}

#[test]
fn names_that_stand_twice_hide_nothing() {
    let problems =
        toml("[[rules]]\nname = \"a\"\nname = \"b\"\nkey = 5\n").expect_err("two things");
    assert_eq!(problems.iter().count(), 3, "{problems}");
    let problems = json("{\"rules\": [{\"name\": \"a\", \"name\": \"b\", \"key\": 5}], \"x\": 1}");
    let problems = problems.expect_err("three things").to_string();
    assert!(problems.contains("rules[0].name: `name` occurs twice"), "{problems}");
    assert!(problems.contains("rules[0].key: found the integer `5`"), "{problems}");
    assert!(problems.contains("x: `x` is not known here"), "{problems}");
}

#[test]
fn the_same_is_told_of_json() {
    let text = "{\"time_zone\": [], \"rules\": [\n{\"key\": \"ip\"},\n7,\n{\"name\": \"a\", \"key\": \"ip\", \"limits\": \
                [\"5/lunch\"]},\n{\"name\": \"b\", \"key\": null, \"limits\": [1e999, null]}]}";
    let problems = json(text).expect_err("five things").to_string();
    let starts = [
        "1:15: time_zone",
        "2:1: rules[0]",
        "3:1: rules[1]",
        "4:39: rules[2].limits[0]",
        "5:22: rules[3].key",
        "5:39: rules[3].limits[0]",
        "5:46: rules[3].limits[1]",
    ];
    for start in starts {
        assert!(
            problems.lines().any(|line| line.starts_with(start)),
            "{start}\nis not in\n{problems}"
        );
    }
}

/// The errors of a file, each with its line and column.
fn lines(text: &str) -> Vec<String> {
    toml(text).expect_err(text).to_string().lines().map(str::to_owned).collect()
}

#[test]
fn an_error_brings_no_others_about_what_is_right() {
    let rule = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"5/second\"]\n";
    let tiered = |tiers: &str| {
        let rule = "[[rules]]\nname = \"api\"\nkey = \"ip\"\ntiers = { customer = { claim = \"id\" }, default = \"free\" }\n";
        format!("[customers]\nacme = \"free\"\nother = \"free\"\n{rule}{tiers}")
    };
    for (text, expected) in [
        // Hours and countries that cannot be told.
        (
            format!("time_zone = \"X/Y\"\n{rule}when = {{ hours = {{ on = [\"mon\"] }} }}"),
            &["1:13: time_zone"][..],
        ),
        (
            format!(
                "geoip = {{ database = \"x.mmdb\" }}\n{rule}when = {{ country = \"DE\" }}\n\
                 [[rules]]\nname = \"b\"\nkey = \"ip\"\nlimits = 5"
            ),
            &["10:10: rules[1].limits"],
        ),
        // Tiers of which none can be read.
        (tiered("[[tiers]]\nlimits = [\"1/second\"]\n"), &["8:1: tiers"]),
        (tiered("[tier.free]\nlimits = [\"1/second\"]\n"), &["8:2: tier"]),
        // A dialect of a rule that is there, and is wrong.
        (
            format!(
                "{}[dialect]\napi = \"openai\"\nrequests = \"api\"",
                rule.replace("second", "fortnight")
            ),
            &["4:11: rules[0].limits[0]"],
        ),
        // Rules of which a dialect may mean one.
        (
            format!(
                "{}[dialect]\napi = \"openai\"\nrequests = \"api\"",
                rule.replace("rules", "rule")
            ),
            &["1:3: rule"],
        ),
        (
            format!(
                "{}[dialect]\napi = \"openai\"\nrequests = \"api\"",
                rule.replace("name", "nam")
            ),
            &["2:1: rules[0].nam"],
        ),
        // What there is instead of limits.
        (
            "[[rules]]\nname = \"a\"\nkey = \"ip\"\ntiers = \"partner\"".to_owned(),
            &["4:9: rules[0].tiers"],
        ),
        (format!("{rule}[tiers.partner]\nunlimited = \"yes\""), &["6:13: tiers.partner.unlimited"]),
    ] {
        let told = lines(&text);
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(&format!("{expected}: ")), "{told:#?}");
        }
    }
}

#[test]
fn a_misspelt_name_hides_no_error_of_the_right_one_beside_it() {
    let rule = "[[rules]]\nname = \"a\"\nkey = \"ip\"\n";
    for (text, places) in [
        (format!("{rule}limit = [\"1/second\"]\nlimits = 5"), ["4:1:", "5:10:"]),
        (format!("{rule}limits = [\"5/fortnight\"]\n[[rule]]\nname = \"b\""), ["4:11:", "5:3:"]),
    ] {
        let told = lines(&text);
        let starts = |place: &str| told.iter().any(|line| line.starts_with(place));
        assert!(told.len() == 2 && places.into_iter().all(starts), "{told:#?}");
    }
}

/// All that is reported of what comes after a hundred errors is that there is more.
#[test]
fn what_is_not_read_behind_very_many_errors_is_not_reported_as_one() {
    let rules: String = (0..101)
        .map(|number| format!("[[rules]]\nname = \"a{number}\"\nkey = \"ip\"\nlimits = 5\n"))
        .collect();
    let told = lines(&format!("{rules}[tiers.free]\nlimits = \"1/second\"\n"));
    assert!(told.iter().all(|line| !line.contains("this cannot be read")), "{told:#?}");
}

/// A text of the largest allowed size is read in seconds, in a build without optimization.
fn quick<O>(read: impl FnOnce() -> O) -> O {
    let begun = Instant::now();
    let outcome = read();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    outcome
}

#[test]
fn a_hundred_thousand_customers_are_read_quickly() {
    let customers = |count: usize, tier: &str| {
        let mut text = "[tiers.free]\nlimits = [\"5/second\"]\n[[rules]]\nname = \"api\"\nkey = \"ip\"\n\
                        tiers = { customer = { claim = \"id\" }, default = \"free\" }\n[customers]\n"
            .to_owned();
        (0..count).for_each(|at| writeln!(text, "customer-{at:06} = {tier}").expect("room"));
        text
    };
    quick(|| toml(&customers(100_000, "\"free\""))).expect("valid policies");
    // Each of them wrong, in shape or in meaning.
    for tier in ["7", "\"fre\""] {
        let problems = quick(|| toml(&customers(20_000, tier))).expect_err("all are wrong");
        assert_eq!(problems.iter().count(), 100);
        assert!(problems.more() > 0);
    }
}

#[test]
fn very_many_things_that_are_wrong_are_counted() {
    let rules = "[[rules]]\nname = 5\n".repeat(2_000);
    let fields: String = (0..2_000).map(|at| format!("f{at} = {at}\n")).collect();
    let lists = format!("rules = [{}]", "7, ".repeat(20_000));
    let syntax = "= =\n".repeat(20_000);
    for text in [&rules, &fields, &lists, &syntax] {
        let problems = quick(|| toml(text)).expect_err("all is wrong");
        assert!(problems.iter().count() <= 100);
        assert!(problems.to_string().len() < 100_000);
    }
}

#[test]
fn a_text_that_is_too_long_or_too_deep_is_refused_quickly() {
    let long = format!("# {}", "x".repeat(32 << 20));
    for read in [toml, json] {
        let problems = quick(|| read(&long)).expect_err("too long").to_string();
        assert!(problems.contains("longer than 33554432 bytes"), "{problems}");
    }
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100), close.repeat(100));
    let wide = format!(
        "{{\"rules\": {}}}",
        deep("[", "]").replace('1', &"1,".repeat(1 << 18)).replace(",]", "]")
    );
    quick(|| json(&wide)).expect_err("no rule");
    quick(|| json(&"[".repeat(1 << 20))).expect_err("no end");
    quick(|| toml(&format!("a = {}", "[".repeat(1 << 20)))).expect_err("no end");
    quick(|| toml(&format!("{} = 1", "a.".repeat(1 << 18) + "b"))).expect_err("too deep");
    quick(|| toml(&format!("[{}]\nx = 1", "a.".repeat(1 << 18) + "b"))).expect_err("too deep");
    let name = "n".repeat(1 << 20);
    quick(|| toml(&format!("[[rules]]\nname = \"{name}\"\nkey = \"ip\"\nlimits = [\"1/s\"]")))
        .expect_err("long");
    quick(|| toml(&format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"{name}\"]")))
        .expect_err("long");
    let digits = "9".repeat(1 << 18);
    for number in [&digits, "1e999", "nan", "1979-05-27", "0xffffffffffffffffff"] {
        let text =
            format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/s\"]\ncost = {number}");
        quick(|| toml(&text)).expect_err("no number that a cost can be");
    }
}

#[test]
fn very_many_tiers_that_are_not_meant_are_told_quickly() {
    let mut text = "[tiers]\n".to_owned();
    for number in 0..20_000 {
        writeln!(text, "t{number} = {{ unlimited = true }}").unwrap();
    }
    text += "[customers]\n";
    for number in 0..20_000 {
        writeln!(text, "c{number} = \"x\"").unwrap();
    }
    let told = quick(|| toml(&text)).expect_err("unknown tiers").to_string();
    assert!(told.contains("there is no tier `x`, expected `t0` or `t1` or"), "{told:.300}");
    assert!(told.contains("or one of 19980 more"), "{told:.900}");
}
