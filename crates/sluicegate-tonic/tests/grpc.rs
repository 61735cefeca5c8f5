//! A tonic client against a tonic server and an axum server that are limited.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate::{Limit, Rejection};
use sluicegate_tonic::rule::KnownLimits;
use sluicegate_tonic::{Grpc, Header, Ip, RateLimitLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;
use tonic_types::StatusExt;

const TWO: Limit = Limit::per(2, Duration::from_secs(3600)).named("two");

/// Serves the health service of tonic behind `layer`.
async fn serve<R>(layer: RateLimitLayer<R>) -> SocketAddr
where
    R: KnownLimits + Clone + Send + Sync + 'static,
    for<'a> R: sluicegate::rule::Rule<
            sluicegate::adapter::HttpView<'a, tonic::body::Body, sluicegate_tonic::Tonic>,
        >,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

async fn client(address: SocketAddr) -> HealthClient<Channel> {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    HealthClient::new(channel.connect().await.unwrap())
}

async fn check(client: &mut HealthClient<Channel>) -> Result<(), Status> {
    client.check(HealthCheckRequest::default()).await.map(drop)
}

#[tokio::test]
async fn a_refused_call_is_resource_exhausted_and_says_when_to_retry() {
    let mut client = client(serve(RateLimitLayer::new(TWO.by(Ip::peer()))).await).await;

    assert!(check(&mut client).await.is_ok());
    assert!(check(&mut client).await.is_ok());
    let status = check(&mut client).await.unwrap_err();

    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "too many requests; try again in 1800 s");
    let retry = status.get_details_retry_info().unwrap();
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(1800)));
    let quota = status.get_details_quota_failure().unwrap();
    assert_eq!(quota.violations[0].subject, "two");
    // The fields of the layer are metadata.
    assert_eq!(status.metadata().get("retry-after").unwrap(), "1800");
    assert!(status.metadata().contains_key("ratelimit-policy"));
}

#[tokio::test]
async fn a_call_without_its_key_is_an_invalid_argument() {
    let mut client = client(serve(RateLimitLayer::new(TWO.by(Header("x-api-key")))).await).await;

    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::InvalidArgument);

    for _ in 0..2 {
        let mut request = Request::new(HealthCheckRequest::default());
        request.metadata_mut().insert("x-api-key", "alice".parse().unwrap());
        assert!(client.check(request).await.is_ok());
    }
}

#[tokio::test]
async fn a_call_that_would_be_redirected_is_refused_as_grpc() {
    let layer = RateLimitLayer::new(TWO.by(Ip::peer()))
        .rejection(Rejection::redirect("https://example.com/"));
    let mut client = client(serve(layer).await).await;

    assert!(check(&mut client).await.is_ok());
    assert!(check(&mut client).await.is_ok());
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn on_one_port_with_axum_each_request_is_answered_in_its_own_way() {
    let layer = sluicegate_axum::RateLimitLayer::new(TWO.by(Ip::peer())).respond(Grpc::new());
    let (_, health) = health_reporter();
    let grpc = tonic::service::Routes::new(health).into_axum_router();
    let app: Router = Router::new().route("/", get(async || "hello")).merge(grpc).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });

    let mut client = client(address).await;
    assert!(check(&mut client).await.is_ok());
    assert!(check(&mut client).await.is_ok());
    assert_eq!(check(&mut client).await.unwrap_err().code(), Code::ResourceExhausted);

    let answer = plain(address).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
}

/// The server's answer to a request that is not gRPC.
async fn plain(address: SocketAddr) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_call_that_costs_more_than_a_limit_admits_is_not_told_to_retry() {
    let layer = || RateLimitLayer::new(TWO.by(Ip::peer()).cost(3));
    for layer in [layer(), layer().rejection(Rejection::redirect("https://example.com/"))] {
        let mut client = client(serve(layer).await).await;
        let status = check(&mut client).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.get_details_retry_info().is_none());
        assert!(!status.metadata().contains_key("retry-after"));
    }
}
