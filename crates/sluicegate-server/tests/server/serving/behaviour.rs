//! What each setting of a file does, as the documentation of Envoy's service says it.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;

use super::server::{back, descriptor, hits, is_over, start, start_with, statuses};

fn limit(key: &str, unit: &str, count: u32) -> String {
    format!("- key: {key}\n  rate_limit: {{ unit: {unit}, requests_per_unit: {count} }}\n")
}

fn domain(descriptors: &[String]) -> String {
    format!("domain: edge\ndescriptors:\n{}", descriptors.concat())
}

#[tokio::test]
async fn each_unit_is_a_window_of_that_length() {
    for (unit, number, seconds) in [
        ("second", Unit::Second, 1_u64),
        ("minute", Unit::Minute, 60),
        ("hour", Unit::Hour, 3_600),
        ("day", Unit::Day, 86_400),
        ("week", Unit::Week, 604_800),
        ("month", Unit::Month, 2_592_000),
        ("year", Unit::Year, 31_536_000),
    ] {
        let mut server = start(&domain(&[limit("user", unit, 2)])).await;
        let now = server.clock.now() / 1_000_000;
        let first = server.ask(vec![descriptor(&[("user", "a")])]).await;
        let status = &first.statuses[0];
        let current = status.current_limit.as_ref().expect("a limit");
        assert_eq!((current.requests_per_unit, current.unit()), (2, number), "{unit}");
        let left = status.duration_until_reset.expect("a time").seconds;
        assert_eq!(u64::try_from(left).expect("a time"), seconds - now % seconds, "{unit}");
        assert_eq!(statuses(&first), [(Code::Ok, 1)], "{unit}");

        assert!(!server.is_over(&[("user", "a")]).await);
        assert!(server.is_over(&[("user", "a")]).await);
        server
            .clock
            .advance(Duration::from_secs(seconds - now % seconds) - Duration::from_micros(1));
        assert!(server.is_over(&[("user", "a")]).await, "{unit}");
        server.clock.advance(Duration::from_micros(1));
        assert!(!server.is_over(&[("user", "a")]).await, "{unit}");
    }
}

#[tokio::test]
async fn what_the_file_does_not_name_is_not_limited() {
    let mut server = start(&domain(&[limit("user", "minute", 1)])).await;
    for entries in [&[("host", "a")][..], &[("user", "a"), ("path", "/")], &[]] {
        for _ in 0..3 {
            let response = server.ask(vec![descriptor(entries)]).await;
            assert_eq!(statuses(&response), [(Code::Ok, 0)], "{entries:?}");
            assert_eq!(response.statuses[0].current_limit, None);
        }
    }
}

#[tokio::test]
async fn a_refused_request_is_charged_by_no_limit() {
    let mut server =
        start(&domain(&[limit("user", "minute", 5), limit("host", "minute", 1)])).await;
    let both = || vec![descriptor(&[("user", "a")]), descriptor(&[("host", "x")])];
    assert_eq!(statuses(&server.ask(both()).await), [(Code::Ok, 4), (Code::Ok, 0)]);
    for _ in 0..10 {
        let refused = server.ask(both()).await;
        assert!(is_over(&refused));
        assert_eq!(statuses(&refused), [(Code::Ok, 4), (Code::OverLimit, 0)]);
    }
    assert_eq!(statuses(&server.ask(vec![descriptor(&[("user", "a")])]).await), [(Code::Ok, 3)]);
}

#[tokio::test]
async fn zero_hits_look_and_negative_hits_give_back() {
    let mut server = start(&domain(&[limit("user", "minute", 3)])).await;
    let user = || descriptor(&[("user", "a")]);
    for _ in 0..5 {
        assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 3)]);
    }
    assert_eq!(statuses(&server.ask(vec![hits(user(), 3)]).await), [(Code::Ok, 0)]);
    assert!(is_over(&server.ask(vec![hits(user(), 0)]).await));
    assert_eq!(statuses(&server.ask(vec![back(user(), 2)]).await), [(Code::Ok, 2)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 2)]);
    // No more comes back than there ever was.
    assert_eq!(statuses(&server.ask(vec![back(user(), u64::MAX)]).await), [(Code::Ok, 3)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 1)]).await), [(Code::Ok, 2)]);
}

#[tokio::test]
async fn what_a_request_gives_back_is_there_for_the_request_itself() {
    let mut server = start(&domain(&[limit("user", "minute", 3)])).await;
    let user = || descriptor(&[("user", "a")]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 3)]).await), [(Code::Ok, 0)]);
    // Whatever the order of the descriptors.
    for both in [[back(user(), 2), user()], [user(), back(user(), 1)]] {
        let answer = server.ask(both.to_vec()).await;
        let left = statuses(&answer)[0].1;
        assert_eq!(statuses(&answer), [(Code::Ok, left); 2]);
    }
    assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 1)]);
    // A refused request has given back nevertheless.
    assert!(is_over(&server.ask(vec![back(user(), 1), hits(user(), 9)]).await));
    assert!(is_over(&server.ask(vec![hits(user(), 0)]).await));
}

#[tokio::test]
async fn a_use_that_is_reported_late_counts_although_it_is_refused() {
    let both = [limit("tokens", "minute", 100), limit("day", "day", 1_000)];
    let mut server = start(&domain(&both)).await;
    let report = |count| {
        vec![hits(descriptor(&[("tokens", "a")]), count), hits(descriptor(&[("day", "a")]), count)]
    };
    assert!(!is_over(&server.ask(report(60)).await));
    assert!(is_over(&server.ask(report(60)).await));
    let left = server.ask(report(0)).await;
    assert_eq!(statuses(&left), [(Code::OverLimit, 0), (Code::Ok, 880)]);
    // The next minute begins afresh.
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(statuses(&server.ask(report(0)).await), [(Code::Ok, 100), (Code::Ok, 880)]);
}

#[tokio::test]
async fn a_rule_in_shadow_mode_counts_and_refuses_nothing() {
    let shadow =
        "- key: user\n  shadow_mode: true\n  rate_limit: { unit: hour, requests_per_unit: 1 }\n";
    let mut server = start(&domain(&[shadow.to_owned()])).await;
    for _ in 0..3 {
        assert_eq!(
            statuses(&server.ask(vec![descriptor(&[("user", "a")])]).await),
            [(Code::Ok, 0)]
        );
    }
}

#[tokio::test]
async fn in_global_shadow_mode_statuses_tell_what_would_be_refused() {
    let file = domain(&[limit("user", "minute", 1)]);
    let mut server = start_with(&file, |service| service.shadow(true)).await;
    let user = || vec![descriptor(&[("user", "a")])];
    assert_eq!(statuses(&server.ask(user()).await), [(Code::Ok, 0)]);
    let response = server.ask(user()).await;
    assert_eq!(response.overall_code(), Code::Ok);
    assert_eq!(statuses(&response), [(Code::OverLimit, 0)]);
}

#[tokio::test]
async fn unlimited_passes_beside_a_limit_for_everybody_else() {
    let file = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
- key: user
  value: internal
  rate_limit: { unlimited: true }
";
    let mut server = start(file).await;
    for _ in 0..3 {
        let response = server.ask(vec![descriptor(&[("user", "internal")])]).await;
        assert_eq!(statuses(&response), [(Code::Ok, u32::MAX)]);
    }
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn a_limit_of_zero_refuses_everything_and_charges_nothing() {
    let mut server =
        start(&domain(&[limit("user", "minute", 0), limit("host", "minute", 2)])).await;
    let both = || vec![descriptor(&[("user", "a")]), descriptor(&[("host", "x")])];
    for _ in 0..3 {
        assert_eq!(statuses(&server.ask(both()).await), [(Code::OverLimit, 0), (Code::Ok, 2)]);
    }
    assert!(!server.is_over(&[("host", "x")]).await);
}

#[tokio::test]
async fn a_limit_that_replaces_another_takes_its_place_in_one_request() {
    let file = "domain: edge
descriptors:
- key: user
  rate_limit: { name: usual, unit: minute, requests_per_unit: 1 }
- key: partner
  rate_limit: { unit: minute, requests_per_unit: 3, replaces: [{ name: usual }] }
";
    let mut server = start(file).await;
    let both = || vec![descriptor(&[("user", "a")]), descriptor(&[("partner", "p")])];
    for left in [2, 1, 0] {
        assert_eq!(statuses(&server.ask(both()).await)[1], (Code::Ok, left));
    }
    assert!(is_over(&server.ask(both()).await));
    // What was replaced was not charged.
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn values_with_a_star_share_a_budget_if_told_so() {
    let file = "domain: edge
descriptors:
- key: path
  value: /own/*
  rate_limit: { unit: minute, requests_per_unit: 1 }
- key: path
  value: /shared/*
  share_threshold: true
  rate_limit: { unit: minute, requests_per_unit: 1 }
";
    let mut server = start(file).await;
    for (path, over) in [
        ("/own/a", false),
        ("/own/b", false),
        ("/own/a", true),
        ("/shared/a", false),
        ("/shared/b", true),
    ] {
        assert_eq!(server.is_over(&[("path", path)]).await, over, "{path}");
    }
    // Nor does the text of the pattern reach another budget.
    assert!(server.is_over(&[("path", "/shared/*")]).await);
}

#[tokio::test]
async fn a_request_is_refused_once_all_its_quotas_are_spent() {
    let quota = |key: &str, count: u32| {
        format!(
            "- key: {key}\n  quota_mode: true\n  rate_limit: {{ unit: hour, requests_per_unit: {count} }}\n"
        )
    };
    let file = domain(&[quota("one", 1), quota("two", 2), limit("user", "hour", 10)]);
    let mut server = start(&file).await;
    let all = || ["one", "two", "user"].map(|key| descriptor(&[(key, "x")])).to_vec();
    let spent = |response: &envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse| {
        let metadata = response.dynamic_metadata.as_ref().expect("metadata");
        format!("{:?}", metadata.fields.get("quotaModeViolations")).matches("NumberValue").count()
    };
    let first = server.ask(all()).await;
    assert_eq!((is_over(&first), spent(&first)), (false, 0));
    let second = server.ask(all()).await;
    assert_eq!((is_over(&second), spent(&second)), (false, 1));
    let third = server.ask(all()).await;
    assert_eq!((is_over(&third), spent(&third)), (true, 2));
    // The refused request was charged by no limit.
    let user = server.ask(vec![hits(descriptor(&[("user", "x")]), 0)]).await;
    assert_eq!(statuses(&user), [(Code::Ok, 8)]);
}

/// Like the service. A quota in shadow mode always has something left.
#[tokio::test]
async fn a_quota_in_shadow_mode_lets_requests_pass_as_long_as_it_is_met() {
    let limit = "rate_limit: { unit: hour, requests_per_unit: 1 }";
    let file = domain(&[
        format!("- key: one\n  quota_mode: true\n  shadow_mode: true\n  {limit}\n"),
        format!("- key: two\n  quota_mode: true\n  {limit}\n"),
    ]);
    let mut server = start(&file).await;
    for _ in 0..3 {
        let both = ["one", "two"].map(|key| descriptor(&[(key, "x")]));
        assert!(!is_over(&server.ask(both.to_vec()).await));
    }
    assert!(is_over(&server.ask(vec![descriptor(&[("two", "x")])]).await));
    let one = server.ask(vec![descriptor(&[("one", "x")])]).await;
    let metadata = one.dynamic_metadata.expect("metadata");
    assert!(metadata.fields.contains_key("quotaModeEnabled"));
    assert!(!metadata.fields.contains_key("quotaModeViolations"));
}
