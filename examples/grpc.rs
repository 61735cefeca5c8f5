//! A gRPC service with a limit, and a client that reads why it is refused.
//!
//!     cargo run --example grpc

use std::time::Duration;

use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

/// Three calls in any ten seconds for each address.
const CALLS: Limit = Limit::sliding_log(3, Duration::from_secs(10)).named("calls");

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);

    // The health service of tonic stands in for a service of your own.
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server =
        Server::builder().layer(RateLimitLayer::new(CALLS.by(Ip::peer()))).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let mut client = HealthClient::new(Channel::from_shared(url)?.connect().await?);
    for call in 1..=5 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(_) => println!("call {call}: served"),
            Err(status) => {
                let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
                println!(
                    "call {call}: {:?}, {}; RetryInfo {retry:?}",
                    status.code(),
                    status.message()
                );
            }
        }
    }
    Ok(())
}
