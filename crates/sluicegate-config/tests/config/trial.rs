//! A rule on trial changes nothing for the others.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use sluicegate::adapter::Peer;
use sluicegate::{ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Live, Policies, read_toml};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test]
async fn what_a_rule_on_trial_would_refuse_is_charged_to_the_others() {
    let document = read_toml(
        r#"
        [[rules]]
        name = "trial"
        key = "ip"
        limits = ["fixed 1/hour"]
        reject = "shadow"
        [[rules]]
        name = "real"
        key = "ip"
        limits = ["fixed 3/hour"]
        "#,
    );
    let policies = document.and_then(|document| Policies::new(&document, &Environment::new()));
    let live = Live::of(policies.expect("valid policies"));
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(live.clone()).rejection(live.rejection()).store(store);
    let mut served = 0;
    for _ in 0..10 {
        let handler = service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(Response::new(String::new()))
        });
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
        let response = layer.layer(handler).oneshot(request).await.expect("a response");
        served += usize::from(response.status() == StatusCode::OK);
    }
    assert_eq!(served, 3);
    assert_eq!(layer.counts().shadowed, 2);
}
