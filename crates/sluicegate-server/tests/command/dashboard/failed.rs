//! Calls that fail before a decision.

use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::{Policies, Server, Service};
use sluicegate_tests::log::Log;

use super::http::{post, send};
use super::status::status;

const RULES: &str =
    "[[rules]]\nname = \"key\"\nkey = { header = \"x-api-key\" }\nlimits = [\"1/minute\"]\n";

/// The addresses for calls of gRPC, for HTTP and for operators.
async fn start(clock: &ManualClock) -> [String; 3] {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, RULES).expect("a file");
    let policies = Policies::new().rules(&file).unwrap_or_else(|error| panic!("{error}"));
    let store = Memory::builder().clock(clock).build();
    let service = Service::builder(policies).store(store).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).http(any).admin(any).bind().await;
    let bound = bound.expect("free ports");
    let addresses = bound.addresses();
    tokio::spawn(bound.run(std::future::pending()));
    [addresses.grpc, addresses.http, addresses.admin]
        .map(|address| address.expect("a port").to_string())
}

#[tokio::test]
async fn calls_that_fail_before_a_decision_are_counted_and_logged() {
    let _alone = super::DECIDES.lock().await;
    let clock = ManualClock::new();
    let [grpc, http, admin] = start(&clock).await;
    let failed = async || status(&admin).await.failed_calls;

    // Decisions are none of them.
    let request = "{\"headers\":{\"x-api-key\":\"a\"}}";
    assert_eq!(post(&http, "/v1/take", request).await.0, 200);
    assert_eq!(post(&http, "/v1/take", request).await.0, 429);
    assert_eq!((failed().await.total, failed().await.last), (0, None));

    let long = format!("{{\"path\":\"{}\"}}", "a".repeat(300_000));
    for (path, body, status) in [
        ("/v1/take", "{", 400),
        ("/v1/take", "{}", 400),
        ("/v1/take", &long, 413),
        ("/json", "{}", 400),
    ] {
        assert_eq!(post(&http, path, body).await.0, status);
    }
    let plain =
        "POST /v1/take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(send(&http, plain).await.0, 415);
    let question = "GET /check HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(send(&http, question).await.0, 400);
    let so_far = failed().await;
    assert_eq!(so_far.total, 6);
    let first = so_far.last.expect("a line");
    assert!(first.starts_with("http, 400"), "{first}");

    // The log gets a line a second.
    clock.advance(Duration::from_secs(1));
    let mut client =
        RateLimitServiceClient::connect(format!("http://{grpc}")).await.expect("a port");
    let error = client.should_rate_limit(RateLimitRequest::default()).await.expect_err("an error");
    assert_eq!(error.code(), tonic::Code::InvalidArgument);
    let so_far = failed().await;
    assert_eq!(so_far.total, 7);
    let last = so_far.last.expect("a line");
    // As people read it, and not as the header field has it.
    assert!(last.starts_with("grpc, invalid_argument: the domain is empty"), "{last}");

    // A request that the client has to change is refused, and counted.
    clock.advance(Duration::from_secs(1));
    let descriptors = vec![Default::default()];
    let request = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 };
    let answer = client.should_rate_limit(request).await.expect("an answer");
    assert_eq!(answer.get_ref().overall_code, 2);
    let last = failed().await.last.expect("a line");
    assert!(last.contains("x-api-key"), "{last}");
}

#[tokio::test]
async fn the_log_has_a_line_a_second_about_calls_that_failed() {
    let _alone = super::DECIDES.lock().await;
    let log = Log::of("sluicegate_server::health");
    // The server runs in this thread.
    let _attached = log.attach();
    let clock = ManualClock::new();
    let [_, http, _] = start(&clock).await;
    let taken = "{\"headers\":{\"x-api-key\":\"a\"}}";
    assert_eq!(post(&http, "/v1/take", taken).await.0, 200);
    assert_eq!(post(&http, "/v1/take", taken).await.0, 429);
    assert_eq!(log.taken(), [""; 0], "decisions are none of them");

    for _ in 0..20 {
        assert_eq!(post(&http, "/v1/take", "{").await.0, 400);
    }
    let lines = log.taken();
    let [line] = &lines[..] else { panic!("expected one line: {lines:?}") };
    for part in ["WARN ", "service=\"http\"", "code=\"400\"", "before a decision"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(line.ends_with("so_far=1"), "{line}");
    clock.advance(Duration::from_millis(999));
    assert_eq!(post(&http, "/v1/take", "{").await.0, 400);
    assert_eq!(log.taken(), [""; 0]);

    clock.advance(Duration::from_millis(1));
    assert_eq!(post(&http, "/v1/take", "{").await.0, 400);
    let lines = log.taken();
    let [line] = &lines[..] else { panic!("expected one line: {lines:?}") };
    assert!(line.ends_with("so_far=22"), "{line}");
}
