//! A store that cannot decide is an error, or lets requests pass, and never refuses them.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use serde_json::json;
use sluicegate_core::Memory;
use sluicegate_core::store::OnStoreError;
use sluicegate_redis::Redis;
use sluicegate_server::{Policies, ServiceBuilder};
use sluicegate_tests::stores::{Manner, TestStore};
use tonic::Request;

use super::http::{post, send};
use super::server::{Running, back, descriptor, hits, serve, start_with, statuses};

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

/// Never answers.
fn silent() -> TestStore {
    TestStore::new(Memory::with_capacity(1), Manner::Never)
}

/// Redis at a port where nobody listens.
fn away() -> Redis {
    Redis::connect("redis://127.0.0.1:1").expect("a URL")
}

fn request(
    descriptor: envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor,
) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".to_owned(), descriptors: vec![descriptor], hits_addend: 0 }
}

async fn each_kind_of_call(
    set: impl Fn(ServiceBuilder) -> ServiceBuilder,
) -> Vec<Result<Code, tonic::Code>> {
    let mut server = start_with(ONE, set).await;
    let user = || descriptor(&[("user", "a")]);
    let mut answers = Vec::new();
    for descriptor in [user(), hits(user(), 0), hits(user(), 9)] {
        let answer = server.client.should_rate_limit(request(descriptor)).await;
        answers.push(
            answer.map(|answer| answer.into_inner().overall_code()).map_err(|error| error.code()),
        );
    }
    answers
}

#[tokio::test]
async fn a_store_that_is_away_or_silent_is_an_error_by_default() {
    let unavailable = [Err(tonic::Code::Unavailable); 3];
    let short = Duration::from_millis(5);
    assert_eq!(each_kind_of_call(|service| service.store(away())).await, unavailable);
    assert_eq!(
        each_kind_of_call(|service| service.store(silent()).deadline(short)).await,
        unavailable
    );
}

#[tokio::test]
async fn a_store_that_is_away_or_silent_lets_requests_pass_if_told_so() {
    let passes = [Ok(Code::Ok); 3];
    let admit = |service: ServiceBuilder| {
        service.on_store_error(OnStoreError::Admit).deadline(Duration::from_millis(5))
    };
    assert_eq!(each_kind_of_call(|service| admit(service.store(away()))).await, passes);
    assert_eq!(each_kind_of_call(|service| admit(service.store(silent()))).await, passes);
}

#[tokio::test]
async fn in_shadow_mode_a_store_that_is_away_or_silent_lets_requests_pass() {
    let passes = [Ok(Code::Ok); 3];
    for apart in [false, true] {
        let shadow = |service: ServiceBuilder| {
            service.shadow(true).apart(apart).deadline(Duration::from_millis(5))
        };
        assert_eq!(each_kind_of_call(|service| shadow(service.store(away()))).await, passes);
        assert_eq!(each_kind_of_call(|service| shadow(service.store(silent()))).await, passes);
    }
}

#[tokio::test]
async fn a_refund_that_the_store_does_not_take_is_no_refusal() {
    let mut server = start_with(ONE, |service| service.store(away())).await;
    let answer = server.ask(vec![back(descriptor(&[("user", "a")]), 1)]).await;
    assert_eq!(statuses(&answer), [(Code::Ok, 0)]);
}

#[tokio::test]
async fn a_caller_with_little_time_is_answered_within_it() {
    let hour = Duration::from_secs(3_600);
    let start = |shadow| {
        start_with(ONE, move |service| service.store(silent()).deadline(hour).shadow(shadow))
    };
    let (mut server, mut trial) = (start(false).await, start(true).await);
    let call = || {
        let mut call = Request::new(request(descriptor(&[("user", "a")])));
        call.metadata_mut().insert("grpc-timeout", "400m".parse().expect("a value"));
        call
    };
    // Once nothing but timers is left, time goes to the first of them: the server's, or else the client's own.
    tokio::time::pause();
    let status = server.client.should_rate_limit(call()).await.expect_err("an error");
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let answer = trial.client.should_rate_limit(call()).await.expect("an answer");
    assert_eq!(answer.into_inner().overall_code(), Code::Ok);
}

#[tokio::test]
async fn health_does_not_depend_on_the_store() {
    let server = start_with(ONE, |service| service.store(away())).await;
    for path in ["/healthz", "/readyz", "/healthcheck"] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(send(&server.http, &head).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn http_clients_get_503_and_never_429() {
    let rules = "[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"1/hour\"]\n";
    let start = async |set: fn(ServiceBuilder) -> ServiceBuilder| -> Running {
        let read = |file: &std::path::Path| Policies::new().rules(file);
        serve("rules.toml", rules, read, set).await
    };
    let refusing = start(|service| service.store(away())).await;
    let admitting =
        start(|service| service.store(away()).on_store_error(OnStoreError::Admit)).await;
    let json = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
    for (path, body) in [("/json", json), ("/v1/take", "{}"), ("/v1/peek", "{}")] {
        assert_eq!(post(&refusing.http, path, body).await.0, 503, "{path}");
        assert_eq!(post(&admitting.http, path, body).await.0, 200, "{path}");
    }
    let (_, answer) = post(&admitting.http, "/v1/take", "{}").await;
    assert_eq!(answer, json!({ "status": 200, "admitted": true }));
}
