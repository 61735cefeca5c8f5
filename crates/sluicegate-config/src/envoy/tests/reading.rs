//! Errors in a file, and their places.

use crate::{Environment, Policies};
use sluicegate_core::rule::KnownLimits;

use super::{headers, read_yaml_with_warnings};

fn problems(text: &str) -> String {
    let read = read_yaml_with_warnings(text, &headers(&["key1", "subkey1"]));
    read.expect_err("a file with something wrong in it").to_string()
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let problems = problems(
        "descriptors:
  - value: v
  - key: key1
    ratelimit: {}
    rate_limit:
      unit: fortnight
      requests_per_unit: many
      replaces:
        - name:
  - key: key1
    share_threshold: true
    shadow_mode: perhaps
  - list
other: 1
",
    );
    let expected = [
        "1:1: `domain` is missing: the name of what the limits are for",
        "2:5: descriptors[0]: `key` is missing: the name of the descriptor's entry",
        "4:5: descriptors[1]: `ratelimit` is not known here: expected `key`, `value`, `rate_limit`, \
         `descriptors`, `shadow_mode`, `quota_mode`, `share_threshold`, `detailed_metric`, \
         `value_to_metric`, `name` or `metadata`",
        "6:13: descriptors[1].rate_limit.unit: `fortnight` is not a unit of time: expected second, \
         minute, hour, day, week, month or year",
        "7:26: descriptors[1].rate_limit.requests_per_unit: expected a whole number below 2^32, not \
         `many`",
        "9:11: descriptors[1].rate_limit.replaces[0]: `name` is missing: that of another limit",
        "10:10: descriptors[2]: its key and value are those of the descriptor in line 3",
        "11:22: descriptors[2].share_threshold: this is for a `value` with `*`, so that all that it \
         matches share one budget",
        "12:18: descriptors[2].shadow_mode: expected true or false, not `perhaps`",
        "13:5: descriptors[3]: a descriptor is a map of fields, not `list`",
        "14:1: `other` is not known here: expected `domain` or `descriptors`",
    ];
    assert_eq!(problems.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn rates_that_make_no_sense_are_told() {
    let with = |limit: &str| {
        problems(&format!("domain: d\ndescriptors:\n- key: key1\n  rate_limit: {{ {limit} }}"))
    };
    for (limit, wrong) in [
        ("requests_per_unit: 5", "4:15: descriptors[0].rate_limit: `unit` is missing"),
        ("unit: day", "`requests_per_unit` is missing, and the service would refuse everything"),
        ("unit: day, requests_per_unit: 4294967296", "a whole number below 2^32"),
        ("unit: day, requests_per_unit: -1", "a whole number below 2^32"),
        ("unlimited: true, unit: day", "an `unlimited` limit has no unit"),
        ("unit: day, requests_per_unit: 1, name: n, replaces: [{ name: n }]", "replace itself"),
        ("unit: day, requests_per_unit: [1]", "expected text, not a list"),
    ] {
        let problems = with(limit);
        assert!(problems.contains(wrong), "{limit}: {problems}");
    }
}

#[test]
fn what_is_not_yaml_is_told_where_it_begins_not_to_be() {
    assert!(problems("domain: 'd").starts_with("1:"), "{}", problems("domain: 'd"));
    assert!(problems("domain: d\n- x").starts_with("2:"), "{}", problems("domain: d\n- x"));
    let twice = problems("domain: d\ndomain: e\n");
    assert!(twice.starts_with("2:1: "), "{twice}");
    let quoted = problems("domain: d\n\"domain\": e\n");
    assert!(quoted.starts_with("2:1: domain: this occurs twice"), "{quoted}");
    let second = problems("domain: d\n---\ndomain: e\n");
    assert_eq!(second, "3:1: a second document begins: expected one, with one domain");
    assert_eq!(problems(""), "1:1: the file is empty, expected a map of fields");
}

#[test]
fn a_file_that_goes_too_deep_or_grows_too_large_is_refused() {
    for (open, times) in [("[", 100), ("[", 10_000), ("- ", 100), ("- ", 10_000)] {
        let deep = problems(&format!("domain:\n {}", open.repeat(times)));
        assert!(
            deep.contains("expected 64 levels at most") || deep.contains("limit exceeded"),
            "{deep}"
        );
    }
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let laughs = problems(&laughs);
    assert!(laughs.contains("alias expansion exceeded"), "{laughs}");
}

#[test]
fn what_changes_nothing_is_a_warning() {
    let text = "domain: d
descriptors:
  - key: key1
    detailed_metric: true
    value_to_metric: false
    metadata: { anything: [at, all] }
    rate_limit:
      unit: second
      requests_per_unit: 1
      replaces:
        - name: nobody
";
    let (_, warnings) = read_yaml_with_warnings(text, &headers(&["key1"])).expect("a valid file");
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "4:22: descriptors[0].detailed_metric: this changes `--envoy-statistics` alone: other metrics go by the name of \
         the limit",
        "6:15: descriptors[0].metadata: this changes nothing here: it is for Envoy's filters",
        "8:7: descriptors[0].rate_limit.replaces: this replaces nothing: no limit has the name \
         `nobody`",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn quotas_are_refused_as_they_cannot_be_followed() {
    let text = "domain: d
descriptors:
- key: key1
  quota_mode: true
  rate_limit: { unit: day, requests_per_unit: 1 }
- key: subkey1
  quota_mode: true
  rate_limit: { unit: day, requests_per_unit: 1 }";
    let problems = problems(text);
    assert!(
        problems.starts_with("4:15: descriptors[0].quota_mode: a quota refuses only"),
        "{problems}"
    );
}

#[test]
fn anchors_and_merged_maps_are_followed() {
    let text = "domain: d
descriptors:
  - &first
    key: key1
    rate_limit: &rate { unit: minute, requests_per_unit: 7 }
  - key: key1
    value: &text 010
    rate_limit: { <<: *rate, unit: HOUR }
  - key: key1
    value: other
    rate_limit: *rate
";
    let (document, _) = read_yaml_with_warnings(text, &headers(&["key1"])).expect("a valid file");
    let policies = Policies::new(&document, &Environment::new()).expect("valid policies");
    let mut limits = Vec::new();
    policies.each_limit(&mut |limit| limits.push(limit.to_string()));
    let expected = [
        "fixed 7/minute named \"key1\" carried",
        "fixed 7/hour named \"key1_010\" carried",
        "fixed 7/minute named \"key1_other\" carried",
    ];
    assert_eq!(limits, expected);
}

#[test]
fn more_limits_on_one_request_than_there_can_be_are_a_warning() {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    let keys: Vec<_> = (0..17).map(|i| format!("k{i}")).collect();
    for key in &keys {
        let rate = "rate_limit: { unit: day, requests_per_unit: 1 }";
        text.push_str(&format!("- {{ key: {key}, {rate} }}\n"));
    }
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let (_, warnings) = read_yaml_with_warnings(&text, &headers(&keys)).expect("a valid file");
    assert!(warnings[0].to_string().contains("more than 16 limits"), "{warnings:?}");
}
