//! gRPC and HTTP on one port, limited together: each caller is answered in its own protocol.
//!
//!     cargo run --example one_port
//!
//! It prints what to try, and makes a few calls by itself.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::{Ip, Limit, RateLimitLayer};
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::{DeadlineHeader, Guard};
use sluicegate_tonic::Grpc;
use tokio::net::TcpListener;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(serve(listener));
    println!("HTTP: curl -i http://{address}/");
    println!("gRPC: grpc.health.v1.Health/Check at {address}\n");
    for (number, result) in (1..).zip(call(address, 4).await?) {
        println!("call {number}: {}", told(result));
    }
    println!("\nThe address has spent its budget for HTTP too. Stop with Ctrl-C.");
    server.await?
}

/// Serves `/` and the health service of tonic, which stands in for a service of your own. Each address may make three
/// requests in ten seconds, by HTTP and gRPC together.
async fn serve(listener: TcpListener) -> Result<(), Error> {
    let limits = RateLimitLayer::new(Limit::sliding_log(3, Duration::from_secs(10)).by(Ip::peer()))
        .respond(Grpc::new());
    let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
    let guard = Guard::new(limits, throttle.layer().deadline(DeadlineHeader::grpc()));

    let (_reporter, health) = tonic_health::server::health_reporter();
    // tonic would answer every path that nobody serves. Here, axum does.
    let grpc = Routes::new(health).into_axum_router().reset_fallback();
    let app: Router = Router::new().route("/", get(async || "hello\n")).merge(grpc).layer(guard);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// The results of this number of calls.
async fn call(address: SocketAddr, calls: usize) -> Result<Vec<Result<(), Status>>, Error> {
    let channel = Channel::from_shared(format!("http://{address}"))?.connect().await?;
    let mut client = HealthClient::new(channel);
    let mut results = Vec::new();
    for _ in 0..calls {
        results.push(client.check(HealthCheckRequest::default()).await.map(drop));
    }
    Ok(results)
}

fn told(result: Result<(), Status>) -> String {
    let Err(status) = result else { return "served".to_owned() };
    let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
    format!("{:?}, {}; RetryInfo {retry:?}", status.code(), status.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn callers_share_a_budget_and_each_is_answered_in_its_own_protocol() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));

        let hello = reqwest::get(format!("http://{address}/")).await.unwrap();
        assert_eq!(hello.status(), 200);
        let results = call(address, 3).await.unwrap();
        let codes: Vec<_> =
            results.into_iter().map(|result| result.err().map(|s| s.code())).collect();
        assert_eq!(codes, [None, None, Some(tonic::Code::ResourceExhausted)]);
        let refused = reqwest::get(format!("http://{address}/")).await.unwrap();
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
    }
}
