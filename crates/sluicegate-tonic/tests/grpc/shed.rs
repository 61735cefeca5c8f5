//! Calls that the throttle sheds.

use std::time::Duration;

use sluicegate_throttle::layer::{ClassHeader, DeadlineHeader, Guard};
use sluicegate_throttle::{Class, Throttle};
use sluicegate_tonic::key::GrpcMethod;
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::servers::{check, client, serve, still};

fn call() -> Request<HealthCheckRequest> {
    Request::new(HealthCheckRequest::default())
}

/// One call at a time, and a queue for one.
fn one_at_a_time() -> Throttle {
    Throttle::builder().in_flight(1).queue_cost(1).build().unwrap()
}

/// Waits until the throttle looks as `is_so` says.
async fn until(throttle: &Throttle, is_so: impl Fn(usize, usize) -> bool) {
    let reached = async {
        loop {
            let snapshot = throttle.snapshot();
            if is_so(snapshot.running, snapshot.queued) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reached).await.expect("it never looks so");
}

fn is_shed(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().starts_with("temporarily reduced capacity; "), "{status}");
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    assert!(pushback.parse::<u32>().unwrap() > 0, "{pushback}");
}

/// A stream that runs until it is dropped.
async fn watch(address: std::net::SocketAddr) -> Streaming<HealthCheckResponse> {
    client(address).await.watch(call()).await.unwrap().into_inner()
}

#[tokio::test]
async fn a_shed_call_is_unavailable_and_its_charge_is_given_back() {
    let throttle = one_at_a_time();
    let limits = RateLimitLayer::new(Limit::per_hour(3).by(Ip::peer())).store(still());
    let guard = Guard::new(limits.clone(), throttle.layer().predict_by(GrpcMethod));
    let address = serve(guard).await;
    let mut client = client(address).await;

    let running = watch(address).await;
    let queued = tokio::spawn({
        let mut client = client.clone();
        async move { check(&mut client).await }
    });
    until(&throttle, |running, queued| running + queued == 2).await;
    for _ in 0..10 {
        is_shed(&check(&mut client).await.unwrap_err());
    }
    drop(running);
    queued.await.unwrap().unwrap();
    // The limit has admitted two calls, and what was shed is not among them.
    check(&mut client).await.unwrap();
    let status = check(&mut client).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn criticality_is_believed_from_the_peers_that_tonic_knows() {
    let throttle = one_at_a_time();
    let class = ClassHeader::new("x-criticality", Class::SHEDDABLE);
    let class = class.from_peers(["127.0.0.1"]).unwrap();
    let address = serve(throttle.layer().criticality(class)).await;
    let mut client = client(address).await;

    let running = watch(address).await;
    let evicted = tokio::spawn({
        let mut client = client.clone();
        async move { check(&mut client).await }
    });
    until(&throttle, |running, queued| running + queued == 2).await;
    let mut critical = call();
    critical.metadata_mut().insert("x-criticality", MetadataValue::from_static("critical_plus"));
    let critical = tokio::spawn(async move { client.check(critical).await });
    is_shed(&evicted.await.unwrap().unwrap_err());
    drop(running);
    critical.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_deadline_of_a_call_is_its_grpc_timeout() {
    let throttle = one_at_a_time();
    let address = serve(throttle.layer().deadline(DeadlineHeader::grpc())).await;
    let mut client = client(address).await;
    let running = watch(address).await;

    // tonic's client would give up by itself, so this one states a time and waits for longer.
    let mut late = call();
    late.metadata_mut().insert("grpc-timeout", MetadataValue::from_static("20m"));
    let status = client.check(late).await.unwrap_err();
    assert!(matches!(status.code(), Code::Unavailable | Code::Cancelled), "{status}");
    until(&throttle, |running, queued| (running, queued) == (1, 0)).await;
    assert_eq!(throttle.snapshot().counts.started, 1);

    drop(running);
    for timeout in ["", "0m", "1", "1x", "100000000S", "99999999H", "1.5S"] {
        let mut odd = call();
        odd.metadata_mut().insert("grpc-timeout", timeout.parse().unwrap());
        let result = client.check(odd).await;
        // The server goes on, whatever a client writes.
        assert!(!matches!(&result, Err(status) if status.code() == Code::Internal), "{timeout}");
    }
    check(&mut client).await.unwrap();
}
