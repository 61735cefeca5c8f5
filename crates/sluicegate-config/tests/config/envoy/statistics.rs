//! What the statistics of limits are called, as in the service's `GetLimit`.

use std::sync::Arc;

use sluicegate_config::envoy::service::{
    Descriptor, Domain, Domains, Plan, Request, Settings, Unit,
};

/// The name for a descriptor with these keys and values.
fn name(file: &str, descriptor: Descriptor<'_>) -> Option<String> {
    let (domain, _) = Domain::read(&format!("domain: edge\ndescriptors:\n{file}")).expect("a file");
    let mut domains = Domains::new();
    domains.add(Arc::new(domain));
    let request = Request { domain: "edge", descriptors: vec![descriptor] };
    let plan = Plan::new(&domains, &request, Settings::default()).expect("a plan");
    plan.statistic(&request, 0).map(std::borrow::Cow::into_owned)
}

const LIMIT: &str = "rate_limit: { unit: day, requests_per_unit: 7 }";

#[test]
fn statistics_have_the_names_that_the_service_gives_them() {
    let one = |more: &str| format!("- {{ key: user, {more} {LIMIT} }}\n");
    let two = |first: &str, second: &str| {
        format!("- key: user\n  {first}\n  descriptors:\n  - {{ key: path, {second} {LIMIT} }}\n")
    };
    let (alice, none) = (&[("user", "alice")][..], &[("user", "")][..]);
    let both = &[("user", "alice"), ("path", "/a")][..];
    for (file, entries, expected) in [
        (one(""), alice, "edge.user"),
        (one("value: alice,"), alice, "edge.user_alice"),
        (one("value: 'a*',"), alice, "edge.user_a*"),
        (one("value_to_metric: true,"), alice, "edge.user_alice"),
        (one("value_to_metric: true,"), none, "edge.user"),
        (one("value: 'a*', value_to_metric: true,"), alice, "edge.user_alice"),
        (one("value: 'a*', share_threshold: true, value_to_metric: true,"), alice, "edge.user_a*"),
        (one("detailed_metric: true,"), alice, "edge.user_alice"),
        (one("detailed_metric: true,"), none, "edge.user_"),
        (one("value: 'a*', detailed_metric: true,"), alice, "edge.user_alice"),
        (one("value: 'a*', share_threshold: true, detailed_metric: true,"), alice, "edge.user_a*"),
        (two("", ""), both, "edge.user.path"),
        (two("value: alice", "value: /a,"), both, "edge.user_alice.path_/a"),
        (two("value_to_metric: true", ""), both, "edge.user_alice.path"),
        (two("", "value_to_metric: true,"), both, "edge.user.path_/a"),
        (two("", "detailed_metric: true,"), both, "edge.user_alice.path_/a"),
        // Only the entry with the limit says that the metric is detailed.
        (two("detailed_metric: true", ""), both, "edge.user.path"),
        (
            two("value: 'a*'\n  share_threshold: true", "detailed_metric: true,"),
            both,
            "edge.user_a*.path_/a",
        ),
        (
            two("value: 'a*'\n  share_threshold: true", "value_to_metric: true,"),
            both,
            "edge.user_a*.path_/a",
        ),
    ] {
        assert_eq!(name(&file, Descriptor::of(entries.iter().copied())).as_deref(), Some(expected));
    }
    let brought =
        Descriptor { limit: Some((5, Unit::Hour)), ..Descriptor::of([("user", "alice")]) };
    assert_eq!(name(&one(""), brought).as_deref(), Some("edge.user_alice"));
}

#[test]
fn what_is_not_limited_has_no_statistics() {
    let of = |entry| Descriptor::of([(entry, "x")]);
    assert_eq!(name(&format!("- {{ key: user, {LIMIT} }}\n"), of("other")), None);
    let unlimited = "- { key: user, rate_limit: { unlimited: true } }\n";
    assert_eq!(name(unlimited, of("user")), None);
}
