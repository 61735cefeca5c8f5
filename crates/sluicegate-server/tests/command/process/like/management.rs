//! Configurations that a management server sends.

use std::sync::Mutex;

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
use sluicegate_tests::servers::Server;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::super::client::Client;
use super::super::sluicegate::FILE;
use super::{admitted, started_with};

type Sent<T> = ReceiverStream<Result<T, Status>>;

/// A management server with one client, to which it sends what a test says.
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
        let taken = self.responses.lock().expect("no panic").take();
        let responses = taken.ok_or(Status::unavailable("the management server is away"))?;
        let (mut stream, requests) = (request.into_inner(), self.requests.clone());
        tokio::spawn(async move {
            while let Ok(Some(request)) = stream.message().await {
                requests.send(request).await.expect("a test");
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

/// The limit of [`FILE`], of this many requests of a unit, as a version.
fn version(name: &str, unit: i32, requests_per_unit: u32) -> DiscoveryResponse {
    let limit = RateLimitPolicy { unit, requests_per_unit, ..RateLimitPolicy::default() };
    let user = RateLimitDescriptor {
        key: "user".to_owned(),
        rate_limit: Some(limit),
        ..RateLimitDescriptor::default()
    };
    let (name_of_it, domain) = ("edge".to_owned(), "edge".to_owned());
    let config = RateLimitConfig { name: name_of_it, domain, descriptors: vec![user] };
    let type_url = RateLimitConfig::type_url();
    DiscoveryResponse {
        version_info: name.to_owned(),
        nonce: name.to_owned(),
        resources: vec![Any { type_url: type_url.clone(), value: config.encode_to_vec() }],
        type_url,
        ..DiscoveryResponse::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_management_server_in_the_place_of_files_changes_limits_and_may_be_wrong_or_away() {
    let (send, responses) = mpsc::channel(8);
    let (requests, mut answers) = mpsc::channel(8);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let management = Management { responses: Mutex::new(Some(responses)), requests };
    let served = tonic::transport::Server::builder()
        .add_service(AggregatedDiscoveryServiceServer::new(management))
        .serve_with_incoming(TcpIncoming::from(listener));
    let served = tokio::spawn(served);
    let year = RateLimitUnit::Year as i32;
    send.send(Ok(version("1", year, 3))).await.expect("a stream");

    let redis = Server::start();
    let server = started_with(
        FILE,
        &[
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &redis.address().to_string()),
            ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
            ("CONFIG_GRPC_XDS_SERVER_URL", &address),
            ("CONFIG_GRPC_XDS_NODE_ID", "edge"),
            ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a"),
        ],
    );
    let mut next = async || answers.recv().await.expect("a request");
    let hello = next().await;
    let node = hello.node.expect("a node");
    assert!(node.id == "edge" && node.metadata.is_some_and(|sent| sent.fields.len() == 1));
    assert_eq!(next().await.version_info, "1");
    let mut client = Client::grpc(server.grpc).await;
    assert_eq!(admitted(&mut client, 5).await, 3);

    send.send(Ok(version("2", year, 7))).await.expect("a stream");
    assert_eq!((&*next().await.version_info, admitted(&mut client, 3).await), ("2", 2));
    // What is not valid changes nothing, and the reason is sent back.
    send.send(Ok(version("3", 99, 100))).await.expect("a stream");
    let refused = next().await;
    assert_eq!((&*refused.version_info, &*refused.response_nonce), ("2", "3"));
    let reason = refused.error_detail.expect("a reason").message;
    assert!(reason.contains("xds: edge") && reason.contains("unit"), "{reason}");
    assert_eq!(admitted(&mut client, 1).await, 0);
    // Nor does a server that is away.
    drop(send);
    served.abort();
    server.says("What is in force stays in force");
    assert_eq!(admitted(&mut client, 1).await, 0);
}
