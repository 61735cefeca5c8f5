//! Calls of tonic are sent again, and streams are not.

use http::uri::PathAndQuery;
use sluicegate::key::Path;
use sluicegate_client::Layered;
use sluicegate_client::replay::{Replay, ReplayBody, ReplayLayer, Sending};
use sluicegate_client::retry::Tokens;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tower::{Layer, ServiceBuilder};

use super::scripted::{Answer, Fields, Scripted, UNAVAILABLE};
use super::*;

type Retrying = Replay<Layered<Sending<Channel, fn(ReplayBody<Body>) -> Body>, RetryLayer>>;

/// A channel whose calls of `Check` are retried at once.
fn retrying(channel: Channel, settings: impl FnOnce(RetryBuilder) -> RetryBuilder) -> Retrying {
    let retry = settings(retry().repeat_when(Path.matches("/grpc.health.v1.Health/Check")));
    let into: fn(ReplayBody<Body>) -> Body = Body::new;
    ReplayLayer::new(retry.build().unwrap(), into).keep(1_024).unwrap().layer(channel)
}

const CHECK: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
const PAY: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Pay");

fn message(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

type Codec = ProstCodec<HealthCheckRequest, HealthCheckResponse>;

/// Makes a unary call.
async fn call_with(
    channel: Channel,
    settings: impl FnOnce(RetryBuilder) -> RetryBuilder,
    path: PathAndQuery,
    request: Request<HealthCheckRequest>,
) -> Result<(), Status> {
    let mut grpc = Grpc::new(retrying(channel, settings));
    grpc.ready().await.unwrap();
    grpc.unary(request, path, Codec::default()).await.map(drop)
}

async fn call(channel: Channel, path: PathAndQuery) -> Code {
    let result = call_with(channel, |settings| settings, path, Request::new(message("shop"))).await;
    result.map_or_else(|status| status.code(), |()| Code::Ok)
}

#[tokio::test]
async fn a_unary_call_is_sent_again_with_the_same_body() {
    for answer in [Answer::Header(UNAVAILABLE), Answer::Trailers(UNAVAILABLE)] {
        let (server, channel) = Scripted::start(&[answer, answer]).await;
        assert_eq!(call(channel, CHECK).await, Code::Ok);
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|call| call.body == seen[0].body && call.body.len() == 5 + 6));
        let attempts = seen.iter().map(|call| call.headers.get("grpc-previous-rpc-attempts"));
        let attempts: Vec<_> = attempts.map(|field| field.map(|field| field.as_bytes())).collect();
        assert_eq!(attempts, [None, Some(&b"1"[..]), Some(b"2")]);
    }
}

#[tokio::test]
async fn what_was_not_named_as_repeatable_is_sent_once() {
    for answer in [Answer::Header(UNAVAILABLE), Answer::Trailers(UNAVAILABLE)] {
        let (server, channel) = Scripted::start(&[answer]).await;
        assert_eq!(call(channel, PAY).await, Code::Unavailable);
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_call_that_has_a_message_is_answered_whatever_its_status() {
    let (server, channel) = Scripted::start(&[Answer::MessageAndTrailers(UNAVAILABLE)]).await;
    assert_eq!(call(channel, CHECK).await, Code::Unavailable);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_status_says_whether_and_when_a_call_is_sent_again() {
    // A `Status` with a `RetryInfo` of one millisecond.
    const RETRY_INFO: &str =
        "CAgaMgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIGCgQQwIQ9";
    let cases: [(Fields, usize); 9] = [
        (&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "1")], 2),
        (&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")], 1),
        (&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "soon")], 1),
        (&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "999999999999")], 1),
        (&[("grpc-status", "8")], 1),
        (&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "1")], 2),
        (&[("grpc-status", "8"), ("grpc-status-details-bin", RETRY_INFO)], 2),
        (&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")], 1),
        (&[("grpc-status", "5"), ("grpc-retry-pushback-ms", "1")], 1),
    ];
    for (fields, expected) in cases {
        for answer in [Answer::Header(fields), Answer::Trailers(fields)] {
            let (server, channel) = Scripted::start(&[answer]).await;
            assert_eq!(call(channel, CHECK).await == Code::Ok, expected == 2, "{fields:?}");
            assert_eq!(server.seen().len(), expected, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_is_never_sent_again() {
    let answer = Answer::Header(UNAVAILABLE);
    let stream = || tokio_stream::iter(["a", "b", "c"]).map(message);
    // All messages are there at once, or one comes late, which is the only one.
    let (server, channel) = Scripted::start(&[answer, answer]).await;
    let mut grpc = Grpc::new(retrying(channel, |settings| settings));
    grpc.ready().await.unwrap();
    let at_once = Request::new(stream());
    let status = grpc.client_streaming(at_once, CHECK, Codec::default()).await.unwrap_err();
    assert_eq!((status.code(), server.seen().len()), (Code::Unavailable, 1));

    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        sender.send(message("late")).await.unwrap();
    });
    grpc.ready().await.unwrap();
    let late = Request::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let status = grpc.client_streaming(late, CHECK, Codec::default()).await.unwrap_err();
    assert_eq!((status.code(), server.seen().len()), (Code::Unavailable, 2));
    let lengths: Vec<_> = server.seen().iter().map(|call| call.body.len()).collect();
    assert_eq!(lengths, [3 * (5 + 3), 5 + 6], "nothing is lost by looking ahead");
}

#[tokio::test]
async fn a_stream_whose_client_waits_for_the_response_is_not_held_up() {
    let (server, channel) = Scripted::start(&[]).await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<HealthCheckRequest>(1);
    let mut grpc = Grpc::new(retrying(channel, |settings| settings));
    grpc.ready().await.unwrap();
    let stream = Request::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let calling = tokio::spawn(async move {
        grpc.streaming(stream, PAY, Codec::default())
            .await
            .map(|_| ())
            .map_err(|status| status.code())
    });
    // The server answers when the stream has ended.
    sender.send(message("one")).await.unwrap();
    drop(sender);
    assert_eq!(calling.await.unwrap(), Ok(()));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_message_above_the_bound_is_sent_once_and_whole() {
    let (server, channel) = Scripted::start(&[Answer::Header(UNAVAILABLE)]).await;
    let large = Request::new(message(&"x".repeat(2_000)));
    let result = call_with(channel, |settings| settings, CHECK, large).await;
    assert_eq!(result.unwrap_err().code(), Code::Unavailable);
    let lengths: Vec<_> = server.seen().iter().map(|call| call.body.len()).collect();
    assert_eq!(lengths, [5 + 2_003]);
}

#[tokio::test]
async fn each_attempt_states_what_is_left_of_the_time() {
    let soon = Answer::Header(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "1200")]);
    let late = Answer::Header(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "60000")]);
    let (server, channel) = Scripted::start(&[soon, late]).await;
    let mut request = Request::new(message("shop"));
    request.set_timeout(Duration::from_secs(20));
    let result = call_with(channel, |settings| settings, CHECK, request).await;
    // A third attempt would come too late.
    assert_eq!(result.unwrap_err().code(), Code::Unavailable);
    let stated = |index: usize| {
        let seen = server.seen();
        let text = seen[index].headers["grpc-timeout"].to_str().unwrap().to_owned();
        sluicegate_throttle::grpc_timeout::read(&text).unwrap()
    };
    assert_eq!(server.seen().len(), 2);
    assert_eq!(stated(0), Duration::from_secs(20));
    assert!(stated(1) <= Duration::from_millis(18_800), "{:?}", stated(1));
}

#[tokio::test]
async fn a_server_that_stalls_gets_no_second_call_after_the_deadline() {
    let (server, channel) = Scripted::start(&[Answer::Never]).await;
    let mut request = Request::new(message("shop"));
    request.set_timeout(Duration::from_secs(2));
    let result = call_with(channel, |settings| settings, CHECK, request).await;
    assert!(result.is_err());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn with_grpcs_throttling_a_server_that_is_down_gets_no_retries() {
    let answers = [Answer::Header(UNAVAILABLE); 40];
    let (server, channel) = Scripted::start(&answers).await;
    let tokens = std::sync::Arc::new(Tokens::try_new(10, 0.1).unwrap());
    for _ in 0..20 {
        let settings = |settings: RetryBuilder| settings.throttling(tokens.clone());
        let request = Request::new(message("shop"));
        call_with(channel.clone(), settings, CHECK, request).await.unwrap_err();
    }
    // The first call has three attempts and the second one two. Then only half of the tokens are left.
    assert_eq!(server.seen().len(), 20 + 2 + 1);
}

#[tokio::test]
async fn the_whole_stack_works_with_a_channel() {
    let (server, channel) = Scripted::start(&[Answer::Trailers(UNAVAILABLE)]).await;
    let retry = retry().repeat_when(Path.matches("/grpc.health.v1.Health/{*call}"));
    let layers = sluicegate_client::Outgoing::new().retry(retry.build().unwrap()).replay(Body::new);
    let service = ServiceBuilder::new().layer(layers).service(channel);
    let mut client = tonic_health::pb::health_client::HealthClient::new(service);
    client.check(message("shop")).await.unwrap();
    assert_eq!(server.seen().len(), 2);
}
