//! A file of Envoy's rate limit service, from the file to the decision.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate_config::document::Key;
use sluicegate_config::envoy::{Descriptors, read_yaml};
use sluicegate_config::{Environment, Policies};
use sluicegate_core::adapter::Charge;
use sluicegate_core::rule::Rule;

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
