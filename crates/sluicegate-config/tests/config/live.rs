//! Policies that are replaced behind a layer that serves.

use std::convert::Infallible;
use std::fs;

use http::{Request, Response, StatusCode};
use sluicegate::adapter::Peer;
use sluicegate::{ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Live};
use tower::{Layer, ServiceExt, service_fn};

fn document(rate: &str, reject: &str) -> String {
    format!("[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"{rate}\"]\nreject = \"{reject}\"")
}

/// The status of the answer, and what it reports about the limit and the rest.
async fn served(layer: &RateLimitLayer<Live>) -> (StatusCode, String, String) {
    let handler =
        service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
    let served = layer.layer(handler).oneshot(request).await.expect("a response");
    let field =
        |name: &str| served.headers()[name].to_str().expect("visible characters").to_owned();
    (served.status(), field("ratelimit-policy"), field("ratelimit"))
}

#[tokio::test]
async fn a_layer_goes_on_with_the_limits_that_are_in_force_and_what_was_spent() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("policies.toml");
    fs::write(&file, document("fixed 2/hour", "block")).expect("a file");
    let live = Live::open(&file, Environment::new()).expect("valid policies");
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(live.clone()).rejection(live.rejection()).store(store);

    for left in [1, 0] {
        let (status, policy, limit) = served(&layer).await;
        assert_eq!(status, StatusCode::OK);
        assert!(policy.starts_with("\"all\";q=2;"), "{policy}");
        assert!(limit.contains(&format!("r={left};")), "{limit}");
    }
    assert_eq!(served(&layer).await.0, StatusCode::TOO_MANY_REQUESTS);

    fs::write(&file, document("fixed 4/hour", "block")).expect("a file");
    live.reload().expect("valid policies");
    let (status, policy, limit) = served(&layer).await;
    assert_eq!(status, StatusCode::OK);
    assert!(policy.starts_with("\"all\";q=4;"), "{policy}");
    assert!(limit.contains("r=1;"), "{limit}");

    fs::write(&file, document("fixed 3/hour", "degrade")).expect("a file");
    live.reload().expect("valid policies");
    assert_eq!(served(&layer).await.0, StatusCode::OK);
    fs::write(&file, "rules = 7").expect("a file");
    live.reload().expect_err("a broken file");
    assert_eq!(served(&layer).await.0, StatusCode::OK);
    fs::write(&file, document("fixed 3/hour", "block")).expect("a file");
    live.reload().expect("valid policies");
    assert_eq!(served(&layer).await.0, StatusCode::TOO_MANY_REQUESTS);
}
