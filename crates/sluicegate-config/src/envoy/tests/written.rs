//! Files in the form of Istio's example and of Envoy Gateway.

use super::{headers, policies, read_yaml, read_yaml_with_warnings};
use crate::document::{Condition, Key, Proxies};
use crate::envoy::Descriptors;
use sluicegate_tests::{Request, names};

/// As Istio's example has it: its routes write the path under this name.
const PATHS: &str = "domain: shop
descriptors:
  - key: PATH
    value: \"/pay\"
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: PATH
    rate_limit: { unit: minute, requests_per_unit: 100 }
";

fn path(path: &str) -> Request {
    Request { path: path.into(), ..Request::default() }
}

#[test]
fn names_that_are_known_are_known_in_any_letter_case() {
    let policies = policies(PATHS, &Descriptors::default());
    assert_eq!(names(&path("/pay").charge(&policies)), ["PATH_/pay"]);
    assert_eq!(names(&path("/other").charge(&policies)), ["PATH"]);
    for key in ["Path", ":PATH", "METHOD", ":Authority", "Host", "Remote_Address", "Generic_Key"] {
        let text = format!(
            "domain: d\ndescriptors:\n- {{ key: '{key}', value: 192.0.2.1, rate_limit: {{ unit: day, \
             requests_per_unit: 1 }} }}"
        );
        read_yaml(&text, &Descriptors::default()).expect(key);
    }
    // What code says about a name is valid for that name only.
    let known = Descriptors::default().with("User", Key::Claim("user".into()));
    let user =
        "domain: d\ndescriptors:\n- { key: user, rate_limit: { unit: day, requests_per_unit: 1 } }";
    read_yaml(user, &known).expect_err("`User` is another key");
}

#[test]
fn no_header_is_suggested_by_guess() {
    let text = PATHS.replace("PATH", "TENANT");
    let problems = read_yaml(&text, &Descriptors::default()).expect_err("whose?").to_string();
    assert!(problems.contains("nothing says what `TENANT` is"), "{problems}");
    assert!(problems.contains(".with(\"TENANT\", ..)"), "{problems}");
    assert!(!problems.contains("Key::Header(\"TENANT\""), "{problems}");
}

#[test]
fn a_header_that_no_request_has_is_warned_of_or_what_is_meant() {
    let known = Descriptors::default().with("PATH", Key::Header("PATH".into()));
    let (_, warnings) = read_yaml_with_warnings(PATHS, &known).expect("a valid file");
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.message().contains("so that nothing is limited"), "{warning}");
    // The names that Envoy gives to headers.
    let known = Descriptors::default().with("PATH", Key::Header(":path".into()));
    assert_eq!(names(&path("/pay").charge(&policies(PATHS, &known))), ["PATH_/pay"]);
    let hosts = PATHS.replace("/pay", "shop.example.com");
    let known = Descriptors::default().with("PATH", Key::Header("Host".into()));
    let request = Request { host: Some("shop.example.com".into()), ..Request::default() };
    assert_eq!(names(&request.charge(&policies(&hosts, &known))), ["PATH_shop.example.com"]);
}

/// As Envoy Gateway writes it: every field, and `null` and empty texts where nothing is said.
const GATEWAY: &str = "name: shop/eg/http
domain: shop/eg/http
descriptors:
  - key: httproute/shop/pay
    value: httproute/shop/pay
    rate_limit: null
    descriptors:
      - key: rule-0-match-0
        value: ''
        rate_limit: null
        descriptors:
          - key: masked_remote_address
            value: 192.0.2.0/24
            rate_limit: null
            descriptors:
              - key: remote_address
                value: \"\"
                rate_limit:
                  requests_per_unit: 3
                  unit: HOUR
                  unlimited: false
                  name: \"\"
                  replaces: []
                descriptors: []
                shadow_mode: false
                quota_mode: false
                detailed_metric: false
                value_to_metric: false
                share_threshold: false
            shadow_mode: false
            quota_mode: false
      - key: rule-1-match-0
        value: rule-1-match-0
        rate_limit:
          requests_per_unit: 0
          unit: UNKNOWN
          unlimited: true
          name: \"\"
          replaces: null
        descriptors: null
";

#[test]
fn what_envoy_gateway_writes_is_read() {
    let on_pay = Condition { path: Some("/pay".into()), ..Condition::default() };
    let known = Descriptors::default()
        .when("httproute/shop/pay", "httproute/shop/pay", on_pay)
        .with("rule-0-match-0", Key::Header("x-user".into()))
        .when("rule-1-match-0", "rule-1-match-0", Condition::default())
        .behind(Proxies::new(["198.51.100.0/24"]));
    let (_, warnings) = read_yaml_with_warnings(GATEWAY, &known).expect("a valid file");
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["1:1: name: this changes nothing, here or in the service"]);
    let policies = policies(GATEWAY, &known);
    let request = |to: &str, from: &str| Request {
        peer: Some(from.parse().expect("an address")),
        ..path(to).header("x-user", "alice")
    };
    let limited = request("/pay", "192.0.2.7").charge(&policies);
    assert_eq!(limited.debits().count(), 1);
    let limit = limited.debits().next().expect("one").limit.to_string();
    assert!(limit.starts_with("fixed 3/hour"), "{limit}");
    assert!(request("/pay", "203.0.113.7").charge(&policies).is_empty());
    assert!(request("/other", "192.0.2.7").charge(&policies).is_empty());
    // Without `Descriptors`, each key that only the routes know is reported once.
    let problems = read_yaml(GATEWAY, &Descriptors::default()).expect_err("which routes?");
    assert_eq!(problems.iter().count(), 2, "{problems}");
}

#[test]
fn a_masked_address_is_compared_by_its_network() {
    let text = |value: &str| {
        format!(
            "domain: d\ndescriptors:\n- {{ key: masked_remote_address, value: {value}, rate_limit: {{ unit: day, \
             requests_per_unit: 1 }} }}"
        )
    };
    let from = |value: &str, peer: &str| {
        let policies = policies(&text(value), &Descriptors::default());
        !Request::from(peer).charge(&policies).is_empty()
    };
    assert!(from("192.0.2.0/24", "192.0.2.200") && !from("192.0.2.0/24", "192.0.3.1"));
    assert!(from("0.0.0.0/0", "8.8.8.8"));
    assert!(from("'2001:db8::/48'", "2001:db8::7") && !from("'2001:db8::/48'", "2001:db9::7"));
    for value in ["''", "'192.0.*'", "nowhere"] {
        let problems = read_yaml(&text(value), &Descriptors::default()).expect_err(value);
        assert!(problems.to_string().starts_with("3:10: "), "{problems}");
    }
    for value in ["10.0.0.0/33", "10.0.0.0/300"] {
        let problems = read_yaml(&text(value), &Descriptors::default()).expect_err(value);
        assert!(
            problems.to_string().ends_with("0 to 32: an IPv4 address has 32 bits"),
            "{problems}"
        );
    }
    let each = Descriptors::default().with("masked_remote_address", Key::Ip);
    read_yaml(&text("''"), &each).expect("each address for itself");
}

#[test]
fn a_quota_is_a_limit_where_a_request_meets_one() {
    let entry = |key: &str, value: &str, quota: bool| {
        format!(
            "- {{ key: {key}, value: '{value}', quota_mode: {quota}, rate_limit: {{ unit: day, \
             requests_per_unit: 1 }} }}\n"
        )
    };
    let read = |entries: &[String]| {
        let text = format!("domain: d\ndescriptors:\n{}", entries.concat());
        read_yaml_with_warnings(&text, &headers(&["user", "model"]))
    };
    let (document, warnings) =
        read(&[entry("user", "a", true), entry("user", "", true), entry("model", "", false)])
            .expect("one quota for each request");
    assert_eq!((document.rules.len(), warnings.len()), (3, 2));
    let problems = read(&[entry("user", "", true), entry("model", "", true)]).expect_err("two");
    let problems = problems.to_string();
    assert_eq!(problems.lines().count(), 2, "{problems}");
    assert!(
        problems.contains("descriptors[1].quota_mode: a quota refuses only once all"),
        "{problems}"
    );
}

#[test]
fn what_the_service_ignores_is_told_and_refused_where_a_limit_was_meant() {
    let read = |entry: &str| {
        let text = format!(
            "domain: d\ndescriptors:\n- {{ key: user, {entry}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}"
        );
        read_yaml_with_warnings(&text, &headers(&["user"]))
    };
    for entry in ["name: mine", "domain: other"] {
        let (_, warnings) = read(entry).expect(entry);
        assert!(warnings[0].message().contains("changes nothing, here or in"), "{warnings:?}");
    }
    for entry in ["unit: second", "requests_per_unit: 7", "unlimited: true", "replaces: []"] {
        let problems = read(entry).expect_err(entry).to_string();
        assert!(problems.contains("expected it under `rate_limit`"), "{problems}");
    }
    for entry in ["shadow_mode: yes", "shadow_mode: On", "shadow_mode: N"] {
        read(entry).expect(entry);
    }
}
