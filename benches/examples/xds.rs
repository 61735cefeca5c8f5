//! How long a server takes to put configurations in force that a management server sends, of which one has changed:
//!
//! ```sh
//! cargo run --release --package sluicegate-benches --features server --example xds
//! ```

use std::error::Error;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};
use prost::{Message as _, Name as _};
use sluicegate_benches::services;
use sluicegate_server::{Policies, Xds};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Domains, with this many descriptors each.
const DOMAINS: usize = 1_000;
const DESCRIPTORS: usize = 5;

/// Versions that are timed.
const VERSIONS: u32 = 50;

type Sent<T> = ReceiverStream<Result<T, Status>>;

struct Management {
    responses: Mutex<Option<mpsc::Receiver<Result<DiscoveryResponse, Status>>>>,
    requests: mpsc::Sender<DiscoveryRequest>,
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Management {
    type StreamAggregatedResourcesStream = Sent<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Sent<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let taken = self.responses.lock().ok().and_then(|mut responses| responses.take());
        let responses = taken.ok_or(Status::unavailable("one client has called already"))?;
        let (mut stream, requests) = (request.into_inner(), self.requests.clone());
        tokio::spawn(async move {
            while let Ok(Some(request)) = stream.message().await {
                let _ = requests.send(request).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(responses)))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("only the state of the world"))
    }
}

fn config(domain: usize, count: u32) -> Any {
    let descriptors = (0..DESCRIPTORS).map(|at| RateLimitDescriptor {
        key: format!("key-{at}"),
        rate_limit: Some(RateLimitPolicy {
            unit: RateLimitUnit::Hour as i32,
            requests_per_unit: count,
            ..RateLimitPolicy::default()
        }),
        ..RateLimitDescriptor::default()
    });
    let name = format!("domain-{domain}");
    let descriptors = descriptors.collect();
    let config = RateLimitConfig { name: name.clone(), domain: name, descriptors };
    Any { type_url: RateLimitConfig::type_url(), value: config.encode_to_vec() }
}

fn main() -> Result<(), Box<dyn Error>> {
    services::runtime().block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let (send, responses) = mpsc::channel(1);
    let (requests, mut answers) = mpsc::channel(1);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let management = Management { responses: Mutex::new(Some(responses)), requests };
    let service = AggregatedDiscoveryServiceServer::new(management);
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let policies = Policies::new();
    let _following = policies.follow(Xds::new(&url, "this one")?);
    answers.recv().await.ok_or("no client")?;

    let mut resources: Vec<_> = (0..DOMAINS).map(|domain| config(domain, 1)).collect();
    let mut times = Vec::new();
    for version in 0..VERSIONS {
        resources[version as usize] = config(version as usize, version + 2);
        let response = DiscoveryResponse {
            version_info: version.to_string(),
            nonce: version.to_string(),
            resources: resources.clone(),
            type_url: RateLimitConfig::type_url(),
            ..DiscoveryResponse::default()
        };
        let begun = Instant::now();
        send.send(Ok(response)).await?;
        let answer = answers.recv().await.ok_or("no answer")?;
        times.push(begun.elapsed());
        if let Some(error) = answer.error_detail {
            return Err(error.message.into());
        }
    }
    let first = times.remove(0);
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{DOMAINS} domains of {DESCRIPTORS} descriptors: {:.1} ms at first, then {:.1} ms (median of {}, {:.1} to {:.1}) for each change of one",
        millis(first),
        millis(times[times.len() / 2]),
        times.len(),
        millis(times[0]),
        millis(times[times.len() - 1]),
    );
    Ok(())
}
