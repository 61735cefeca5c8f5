//! A file of Envoy's rate limit service, from the file to the decision.

use std::convert::Infallible;

use http::{Request, Response};
use sluicegate::adapter::{HttpView, Peer};
use sluicegate::{ManualClock, Memory, RateLimitLayer};
use sluicegate_config::document::Key;
use sluicegate_config::envoy::{Descriptors, read_yaml};
use sluicegate_config::{Environment, Policies, PolicyFile, check};
use sluicegate_core::adapter::Charge;
use sluicegate_core::rule::Rule;
use tower::{Layer, ServiceExt, service_fn};

const EVERYTHING: &str = include_str!("documents/everything.yaml");

/// The names of the limits that a request is charged to.
fn debit(policies: &Policies, path: &str, peer: &str, user: Option<&str>) -> Vec<String> {
    let mut request = Request::builder().uri(path);
    if let Some(user) = user {
        request = request.header("user", user);
    }
    let mut request = request.body(()).expect("a request");
    request.extensions_mut().insert(Peer(peer.parse().expect("an address")));
    let mut charge = Charge::new();
    let view: HttpView<'_, ()> = HttpView::new(&request);
    policies.charge(&view, &mut charge).expect("all that is asked for");
    charge.debits().map(|debit| debit.limit.name().to_string()).collect()
}

#[test]
fn everything_that_a_file_may_say_is_followed() {
    let descriptors = Descriptors::default().with("user", Key::Header("user".to_owned()));
    let document = read_yaml(EVERYTHING, &descriptors).expect("a valid file");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    let debit = |path, peer, user| debit(&policies, path, peer, user);

    assert_eq!(debit("/", "192.0.2.7", None), ["remote_address"]);
    assert_eq!(debit("/", "50.0.0.5", None), ["remote_address_50.0.0.5"]);
    assert_eq!(debit("/", "10.1.2.3", None), ["remote_address_10.1.*"]);
    let uploads = "generic_key_uploads.user";
    assert_eq!(debit("/", "192.0.2.7", Some("alice")), ["remote_address", uploads]);
    assert_eq!(debit("/", "192.0.2.7", Some("trusted")), ["remote_address"]);
    let tested = debit("/", "192.0.2.7", Some("test-7"));
    assert!(tested[1].starts_with("generic_key_uploads.us"), "{tested:?}");
    let replaced = debit("/api/v1/action", "192.0.2.7", Some("alice"));
    assert_eq!(replaced, ["remote_address", "path_/api/*/action"]);
}

#[tokio::test]
async fn a_limit_of_nothing_is_answered_with_429_and_is_no_mistake() {
    let text = "domain: d\ndescriptors:\n\
        - { key: user, value: banned, rate_limit: { unit: minute, requests_per_unit: 0 } }\n";
    let descriptors = Descriptors::default().with("user", Key::Header("user".to_owned()));
    let document = read_yaml(text, &descriptors).expect("a valid file");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(policies).store(store);
    for (user, expected) in [("banned", 429), ("alice", 200)] {
        let handler = service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(Response::new(String::new()))
        });
        let request = Request::builder().header("user", user).body(()).expect("a request");
        let served = layer.layer(handler).oneshot(request).await.expect("a response");
        assert_eq!(served.status(), expected, "{user}");
        assert!(!served.headers().contains_key("retry-after"), "it is never admitted");
    }

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("limits.yaml");
    std::fs::write(&path, text).expect("a file");
    let report = check(PolicyFile::new(&path).format(descriptors)).expect("a valid file");
    assert!(report.to_string().contains("; refuses everything\n"), "{report}");
    let mistakes = report.warnings.iter().filter(|warning| warning.message().contains("admitted"));
    assert_eq!(mistakes.count(), 0, "{report}");
}
