//! A client of a limited gRPC service that waits instead of being refused.
//!
//! The service allows three calls in a second; the client makes twelve at once. It reads in the fields of the responses what
//! is left, and in `RetryInfo` when to come back, if it was refused after all.
//!
//!     cargo run --example grpc_client

use std::time::{Duration, Instant};

use sluicegate::key::Path;
use sluicegate_client::outgoing::Context;
use sluicegate_client::{Outgoing, PropagateLayer, RetryLayer};
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Request;
use tonic::body::Body;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let channel = Channel::from_shared(start_service().await?)?.connect().await?;
    // Calls are POST: this one only reads, so it may arrive twice. `replay` keeps its body. Deadlines go along as
    // `grpc-timeout`.
    let reads = Path.matches("/grpc.health.v1.Health/Check");
    let retry = RetryLayer::builder().repeat_when(reads).build()?;
    let layers = Outgoing::new().retry(retry).propagate(PropagateLayer::new()).replay(Body::new);
    let client = HealthClient::new(ServiceBuilder::new().layer(layers).service(channel));

    let started = Instant::now();
    let mut calls = JoinSet::new();
    for number in 1..=12 {
        let mut client = client.clone();
        calls.spawn(async move {
            let mut call = Request::new(HealthCheckRequest::default());
            call.extensions_mut().insert(Context::new().timeout(Duration::from_secs(20)));
            let result = client.check(call).await;
            let result = result.map_or_else(|status| status.to_string(), |_| "served".to_owned());
            println!("{:>5} ms  call {number:>2}: {result}", started.elapsed().as_millis());
        });
    }
    calls.join_all().await;
    Ok(())
}

/// Serves the health service of tonic, which stands in for a service of your own, until this process ends.
async fn start_service() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let (_, health) = tonic_health::server::health_reporter();
    let layer = RateLimitLayer::new(Limit::per_second(3).by(Ip::peer()));
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    Ok(url)
}
