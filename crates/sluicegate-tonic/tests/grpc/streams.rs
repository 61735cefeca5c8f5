//! Calls that stream.

use std::time::Duration;

use sluicegate_tonic::{CountMessages, Ip, Limit, RateLimitLayer};
use tonic::Code;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::server::health_reporter;
use tower::ServiceBuilder;

use crate::servers::{check, client, listen, serve, still};

#[tokio::test]
async fn a_stream_holds_its_place_until_it_has_ended_or_its_client_has_left() {
    let layer = RateLimitLayer::new(Limit::concurrent(1).by(Ip::peer()));
    let mut client = client(serve(layer).await).await;
    for _ in 0..3 {
        let stream = client.watch(HealthCheckRequest::default()).await.unwrap();
        for _ in 0..3 {
            let status = check(&mut client).await.unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted);
        }
        // The client leaves in the middle of the stream.
        drop(stream);
        let is_free = async {
            while check(&mut client).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), is_free).await.expect("its place is free");
    }
}

#[tokio::test]
async fn a_stream_costs_what_it_has_sent_when_its_client_leaves() {
    let rule = Limit::per_hour(6).by(Ip::peer()).settle_cost(|reply| reply.cost());
    // The other limit refuses until the server has seen that the client has left.
    let one = Limit::concurrent(1).by(Ip::peer());
    let limits = RateLimitLayer::new((rule, one)).store(still());
    let layers = ServiceBuilder::new().layer(limits).layer(CountMessages::sent()).into_inner();
    let (address, incoming) = listen().await;
    let (reporter, health) = health_reporter();
    let server = Server::builder().layer(layers).add_service(health);
    tokio::spawn(server.serve_with_incoming(incoming));
    let mut client = client(address).await;

    let mut stream = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    for status in [ServingStatus::NotServing, ServingStatus::Serving, ServingStatus::NotServing] {
        reporter.set_service_status("", status).await;
        assert!(stream.message().await.unwrap().is_some());
    }
    drop(stream);
    let has_left = async {
        while check(&mut client).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), has_left).await.expect("it has left");
    // Of six, the stream has cost four and the call above one.
    check(&mut client).await.unwrap();
    let status = check(&mut client).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_unary_call_has_a_message_in_each_direction() {
    let rule = Limit::per_hour(6).by(Ip::peer()).settle_cost(|reply| reply.cost());
    for (count, calls) in
        [(CountMessages::sent(), 6), (CountMessages::received(), 6), (CountMessages::both(), 3)]
    {
        let limits = RateLimitLayer::new(rule.clone()).store(still());
        let layers = ServiceBuilder::new().layer(limits).layer(count).into_inner();
        let mut client = client(serve(layers).await).await;
        let mut admitted = 0;
        while check(&mut client).await.is_ok() {
            admitted += 1;
        }
        assert_eq!(admitted, calls, "{count:?}");
    }
}
