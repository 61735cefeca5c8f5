use std::net::SocketAddr;

use sluicegate_client::{AdaptiveThrottleLayer, PropagateLayer};
use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;
use tower::ServiceBuilder;

use super::{is_refused, obey};

/// Serves the health service of tonic, for two calls an hour.
async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = health_reporter();
    let layer = RateLimitLayer::new(Limit::per_hour(2).by(Ip::peer()));
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

#[tokio::test]
async fn a_call_does_not_leave_before_the_delay_of_retry_info() {
    let channel = Channel::from_shared(format!("http://{}", serve().await)).unwrap();
    let channel = channel.connect().await.unwrap();
    let layers = ServiceBuilder::new()
        .layer(AdaptiveThrottleLayer::new())
        .layer(obey())
        .layer(PropagateLayer::new());
    let mut client = HealthClient::new(layers.service(channel));
    let mut codes = Vec::new();
    for _ in 0..3 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(_) => codes.push(Code::Ok),
            Err(status) if is_refused(&status) => codes.push(Code::Cancelled),
            Err(status) => codes.push(status.code()),
        }
    }
    // The layer saw in the fields of the second answer that nothing is left.
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::Cancelled]);
}
