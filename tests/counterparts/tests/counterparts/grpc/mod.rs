//! gRPC's own client, for Python: it reads the details of a status, and its retries wait as long as they are told.

use std::time::Duration;

use serde_json::Value;
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tokio::process::Command;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::server::health_reporter;

/// How long the client may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the client sees of two plain calls and one with retries, and how many attempts were refused.
async fn calls(limit: Limit, cost: u64) -> (Vec<Value>, u64) {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap().to_string();
    let layer = RateLimitLayer::new(limit.by(Ip::peer()).cost(cost));
    let (_, health) = health_reporter();
    let server = Server::builder().layer(layer.clone()).add_service(health);
    tokio::spawn(server.serve_with_incoming(incoming));

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counterparts/grpc/call.py");
    let mut command = Command::new(sluicegate_counterparts::find("python-with-grpc"));
    command.args([script, &address]).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    (serde_json::from_slice(&output.stdout).unwrap(), layer.counts().refused)
}

#[tokio::test]
async fn the_client_reads_the_details_and_its_retries_wait_as_told() {
    // Slow machines make the second call within its time too.
    let every = Duration::from_secs(5);
    let (seen, refused) = calls(Limit::per(1, every).named("calls"), 1).await;
    assert_eq!(seen[0]["code"], "OK", "{seen:?}");

    let second = &seen[1];
    assert_eq!(second["code"], "RESOURCE_EXHAUSTED", "{seen:?}");
    assert_eq!(second["subjects"], serde_json::json!(["calls"]), "{seen:?}");
    let wait = second["retry_ms"].as_u64().unwrap();
    assert!((1..=5_000).contains(&wait), "{seen:?}");
    assert_eq!(second["pushback"], wait.to_string(), "{seen:?}");
    assert!(second["message"].as_str().unwrap().starts_with("too many requests"), "{seen:?}");

    // Three attempts a millisecond apart would all have been refused.
    assert_eq!(seen[2]["code"], "OK", "{seen:?}");
    assert!(seen[2]["waited"].as_f64().unwrap() > 0.001, "{seen:?}");
    assert!(refused <= 2, "{refused} refused: {seen:?}");
}

#[tokio::test]
async fn a_call_that_can_never_be_admitted_is_not_retried() {
    let (seen, refused) = calls(Limit::per_hour(1), 2).await;
    for answer in &seen {
        assert_eq!(answer["code"], "RESOURCE_EXHAUSTED", "{seen:?}");
        assert_eq!(answer["pushback"], "-1", "{seen:?}");
        assert!(answer["retry_ms"].is_null(), "{seen:?}");
    }
    assert_eq!(refused, 3, "each call is one attempt");
}
