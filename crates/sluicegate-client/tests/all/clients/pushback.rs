//! What a server with `sluicegate-tonic` answers, a retrying client obeys.

use std::net::SocketAddr;

use http::uri::PathAndQuery;
use sluicegate::key::Path;
use sluicegate::{Limit, ManualClock, Memory};
use sluicegate_client::replay::{ReplayBody, ReplayLayer};
use sluicegate_tonic::{Ip, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::health_reporter;
use tonic_prost::ProstCodec;
use tower::Layer;

use super::retry;

const CHECK: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Check");

/// Makes a call, which is retried at once unless the server says otherwise.
async fn call(address: SocketAddr, clock: ManualClock) -> Result<(), Status> {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    let channel = channel.connect().await.unwrap();
    let retry = retry().clock(&clock).repeat_when(Path.matches("/grpc.health.v1.Health/Check"));
    let into: fn(ReplayBody<Body>) -> Body = Body::new;
    let mut grpc = Grpc::new(ReplayLayer::new(retry.build().unwrap(), into).layer(channel));
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    grpc.unary(Request::new(HealthCheckRequest::default()), CHECK, codec).await.map(drop)
}

/// The result of the second call, and how many attempts were refused, while the time goes on.
async fn second_call(limit: Limit, cost: u64) -> (Result<(), Status>, u64) {
    let clock = ManualClock::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = health_reporter();
    let layer = RateLimitLayer::new(limit.by(Ip::peer()).cost(cost))
        .store(Memory::builder().clock(&clock).build());
    let server = Server::builder().layer(layer.clone()).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let _ = call(address, clock.clone()).await;
    let before = layer.counts().refused;
    let called = tokio::spawn(call(address, clock.clone()));
    while !called.is_finished() {
        clock.advance(std::time::Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    (called.await.unwrap(), layer.counts().refused - before)
}

#[tokio::test]
async fn a_refused_call_is_repeated_once_and_not_too_early() {
    for limit in [Limit::per_second(1), Limit::per_minute(4).burst(1)] {
        let (result, refused) = second_call(limit, 1).await;
        // An attempt before its time would have been refused too.
        assert_eq!((result.map_err(|status| status.code()), refused), (Ok(()), 1), "{limit}");
    }
}

#[tokio::test]
async fn a_call_that_can_never_be_admitted_is_not_repeated() {
    let (result, refused) = second_call(Limit::per_second(1), 2).await;
    assert_eq!((result.unwrap_err().code(), refused), (Code::ResourceExhausted, 1));
}
