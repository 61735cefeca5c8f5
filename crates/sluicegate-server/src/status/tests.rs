//! What is counted, in whichever way a request comes.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use sluicegate_config::envoy::service::{Descriptor, Request as Asked};
use tower::ServiceExt as _;

use crate::grpc::Unary as _;
use crate::policies::Policies;
use crate::rls::{self, Rls};
use crate::service::Service;

const RULES: &str =
    "[[rules]]\nname = \"api\"\nkey = { header = \"x-api-key\" }\nlimits = [\"2/hour\"]\n";

#[tokio::test]
async fn a_request_that_lacks_something_is_counted_once_in_whichever_way_it_comes() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, RULES).expect("a file");
    let policies = Policies::new().rules(&file).expect("valid rules");
    let service = Service::builder(policies).build().expect("a service");
    let take = async |body: &'static str| {
        let request = Request::post("/v1/take").header("content-type", "application/json");
        let request = request.body(Body::from(body)).expect("a request");
        crate::api::v1::routes(&service).oneshot(request).await.expect("an answer").status()
    };
    let ask = async |entries: &[(&str, &str)]| {
        let descriptors = vec![Descriptor::of(entries.iter().copied())];
        let asked = Asked { domain: "edge", descriptors };
        let answer = rls::answer(&service, &asked, Duration::from_secs(1)).await;
        answer.expect("a decision").is_over
    };
    let counted = || service.dashboard().latency().requests();

    assert_eq!(take("{}").await, 400);
    assert_eq!(counted(), [0, 1, 0]);
    assert_eq!(take(r#"{"headers":{"x-api-key":"a"}}"#).await, 200);
    assert_eq!(counted(), [1, 1, 0]);
    assert_eq!(take(r#"{"path":"/?a","query":"b"}"#).await, 400);
    assert_eq!(counted(), [1, 2, 0]);

    assert!(ask(&[("path", "/")]).await);
    assert_eq!(counted(), [1, 3, 0]);
    assert!(!ask(&[("x-api-key", "a")]).await);
    assert_eq!(counted(), [2, 3, 0]);
    assert!(ask(&[("x-api-key", "a")]).await);
    assert_eq!(counted(), [2, 4, 0]);

    // A message that is too large to be read.
    let (head, ()) = Request::new(()).into_parts();
    Rls::new(&service).answer(head, None).await.expect("a decision");
    assert_eq!(counted(), [2, 5, 0]);
}
