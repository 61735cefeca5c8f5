//! Each layer around each client: reqwest, the chain of reqwest-middleware, hyper-util, and a channel of tonic.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::{Client as HyperClient, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::ClientBuilder;
use sluicegate::condition::Condition;
use sluicegate::key::Path;
use sluicegate::{Global, Limit, Memory};
use sluicegate_client::outgoing::{AsMiddleware, Context, MiddlewareLayer, OutgoingView};
use sluicegate_client::pace::{Pacer, Patience};
use sluicegate_client::replay::{ReplayBody, ReplayLayer, Sending};
use sluicegate_client::smooth::Refilled;
use sluicegate_client::{
    AdaptiveThrottleLayer, BoxError, Outgoing, PaceLayer, PropagateLayer, SmoothLayer,
};
use tonic::body::Body;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, Service, ServiceExt};

use super::scripted::{Answer, Scripted, UNAVAILABLE};
use super::*;

/// Sends a request: its status, or whether a layer held it back.
type Send = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<u16, bool>>>>>;

fn sends<F: Future<Output = Result<u16, BoxError>> + 'static>(
    send: impl Fn() -> F + 'static,
) -> Send {
    Arc::new(move || {
        let sent = send();
        Box::pin(async move { sent.await.map_err(|error| is_refused(&*error)) })
    })
}

fn by_reqwest<L, S>(layer: &L, url: &str) -> Send
where
    L: Layer<reqwest::Client, Service = S>,
    S: Service<reqwest::Request, Response = reqwest::Response, Error: Into<BoxError>>
        + Clone
        + 'static,
{
    let (service, url) = (layer.layer(reqwest::Client::new()), url.to_owned());
    sends(move || {
        let request = reqwest::Request::new(http::Method::GET, url.parse().unwrap());
        let sent = service.clone().oneshot(request);
        async move { sent.await.map(|response| response.status().as_u16()).map_err(Into::into) }
    })
}

fn by_middleware<L>(layer: &L, url: &str) -> Send
where
    L: for<'a> MiddlewareLayer<'a> + Clone + std::marker::Send + Sync + 'static,
{
    let client =
        ClientBuilder::new(reqwest::Client::new()).with(AsMiddleware(layer.clone())).build();
    let url = url.to_owned();
    sends(move || {
        let sent = client.get(&url).send();
        async move { sent.await.map(|response| response.status().as_u16()).map_err(Into::into) }
    })
}

fn by_hyper<L, S, B>(layer: &L, url: &str) -> Send
where
    L: Layer<HyperClient<HttpConnector, Empty<Bytes>>, Service = S>,
    S: Service<http::Request<Empty<Bytes>>, Response = http::Response<B>, Error: Into<BoxError>>
        + Clone
        + 'static,
{
    let service = layer.layer(HyperClient::builder(TokioExecutor::new()).build_http());
    let url = url.to_owned();
    sends(move || {
        let sent = service.clone().oneshot(http::Request::get(&url).body(Empty::new()).unwrap());
        async move { sent.await.map(|response| response.status().as_u16()).map_err(Into::into) }
    })
}

type IntoBody = fn(ReplayBody<Body>) -> Body;

fn by_tonic<L, S, B>(layer: &L, channel: Channel) -> Send
where
    L: Layer<Sending<Channel, IntoBody>, Service = S> + Clone,
    S: Service<
            http::Request<ReplayBody<Body>>,
            Response = http::Response<B>,
            Error: Into<BoxError> + std::marker::Send + Sync,
        > + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError> + std::marker::Send>
        + std::marker::Send
        + 'static,
{
    let client =
        HealthClient::new(ReplayLayer::new(layer.clone(), Body::new as IntoBody).layer(channel));
    sends(move || {
        let mut client = client.clone();
        async move {
            match client.check(HealthCheckRequest::default()).await {
                Ok(_) => Ok(200),
                Err(status) if status.code() == tonic::Code::Unavailable => Ok(503),
                Err(status) => Err(status.into()),
            }
        }
    })
}

/// The clients with `layer` around each, and how many requests their servers have seen. Each server gives these answers.
macro_rules! every {
    ($layer:expr, $answers:expr, $calls:expr) => {{
        let (answers, calls): (&[&str], &[Answer]) = ($answers, $calls);
        let servers = [
            Server::start(answers).await,
            Server::start(answers).await,
            Server::start(answers).await,
        ];
        let (grpc, channel) = Scripted::start(calls).await;
        let clients = [
            by_reqwest(&$layer(), &servers[0].url),
            by_middleware(&$layer(), &servers[1].url),
            by_hyper(&$layer(), &servers[2].url),
            by_tonic(&$layer(), channel),
        ];
        let seen = move |client: usize| match servers.get(client) {
            Some(server) => server.seen().len(),
            None => grpc.seen().len(),
        };
        (clients, seen)
    }};
}

/// Calls of gRPC are POST. This one may arrive twice.
fn reads() -> impl for<'a> Condition<OutgoingView<'a>> + std::marker::Send + Sync + 'static {
    Path.matches("/grpc.health.v1.Health/{*call}")
}

const NAMES: [&str; 4] = ["reqwest", "reqwest-middleware", "hyper-util", "tonic"];

#[tokio::test]
async fn each_client_is_paced() {
    let layer = || {
        let memory = Memory::builder().capacity(10).clock(ManualClock::new()).build();
        let pacer = Pacer::counted_in(memory, Limit::per_hour(2)).patience(Patience::Not);
        PaceLayer::new(Global, pacer)
    };
    let (clients, seen) = every!(layer, &["200 OK"], &[]);
    for (number, send) in clients.iter().enumerate() {
        let ends = [send().await, send().await, send().await];
        assert_eq!((ends, seen(number)), ([Ok(200), Ok(200), Err(true)], 2), "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_is_smoothed() {
    let layer = || {
        let method = Refilled::new(2, Duration::from_secs(3_600)).unwrap();
        let builder = SmoothLayer::builder(method).patience(Patience::Not);
        builder.clock(ManualClock::new()).build().unwrap()
    };
    let (clients, seen) = every!(layer, &["200 OK"], &[]);
    for (number, send) in clients.iter().enumerate() {
        let ends = [send().await, send().await, send().await];
        assert_eq!((ends, seen(number)), ([Ok(200), Ok(200), Err(true)], 2), "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_obeys() {
    let busy = "429 No\r\nretry-after: 60";
    let exhausted = Answer::Header(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "60000")]);
    let (clients, seen) = every!(obey, &[busy], &[exhausted]);
    for (number, send) in clients.iter().enumerate() {
        let ends = [send().await.is_ok(), send().await == Err(true)];
        assert_eq!((ends, seen(number)), ([true, true], 1), "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_retries() {
    let layer = || retry().repeat_when(reads()).build().unwrap();
    let (clients, seen) = every!(layer, &["503 No", "200 OK"], &[Answer::Trailers(UNAVAILABLE)]);
    for (number, send) in clients.iter().enumerate() {
        assert_eq!((send().await, seen(number)), (Ok(200), 2), "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_is_throttled_when_its_server_rejects_all() {
    let layer = || AdaptiveThrottleLayer::builder().clock(ManualClock::new()).build().unwrap();
    let (clients, seen) = every!(layer, &["503 No"], &[Answer::Header(UNAVAILABLE); 100]);
    for (number, send) in clients.iter().enumerate() {
        let mut held_back = 0;
        for _ in 0..100 {
            held_back += usize::from(send().await == Err(true));
        }
        assert!(held_back > 50, "{}: {held_back}", NAMES[number]);
        assert_eq!(seen(number), 100 - held_back, "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_hands_the_criticality_and_the_whole_stack_works() {
    let layer = || {
        let retry = retry().repeat_when(reads()).build().unwrap();
        Outgoing::new().retry(retry).propagate(PropagateLayer::new())
    };
    let (clients, seen) = every!(layer, &["503 No", "200 OK"], &[Answer::Header(UNAVAILABLE)]);
    for (number, send) in clients.iter().enumerate() {
        let context = Context::new().criticality("SHEDDABLE").timeout(Duration::from_secs(60));
        assert_eq!(context.scope(send()).await, Ok(200), "{}", NAMES[number]);
        assert_eq!(seen(number), 2, "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_returns_the_response_to_the_attempt_that_was_sent() {
    let pace = || {
        let memory = Memory::builder().capacity(10).clock(ManualClock::new()).build();
        let pacer = Pacer::counted_in(memory, Limit::per_hour(1)).patience(Patience::Not);
        PaceLayer::new(Global, pacer)
    };
    let layer = || {
        let retry = retry().repeat_when(reads()).build().unwrap();
        Outgoing::new().retry(retry).pace(pace())
    };
    let (clients, seen) = every!(layer, &["503 No"], &[Answer::Header(UNAVAILABLE)]);
    for (number, send) in clients.iter().enumerate() {
        assert_eq!((send().await, seen(number)), (Ok(503), 1), "{}", NAMES[number]);
        // This one was not sent.
        assert_eq!((send().await, seen(number)), (Err(true), 1), "{}", NAMES[number]);
    }
}

#[tokio::test]
async fn each_client_returns_the_error_of_the_attempt_that_was_sent() {
    // The server closes the connection without an answer.
    let layer = || {
        let retry = retry().repeat_when(reads()).build().unwrap();
        let method = Refilled::new(1, Duration::from_secs(3_600)).unwrap();
        let builder = SmoothLayer::builder(method).patience(Patience::Not);
        let smooth = builder.clock(ManualClock::new()).build().unwrap();
        Outgoing::new().retry(retry).pace(smooth)
    };
    let (clients, seen) = every!(layer, &[""], &[Answer::Never]);
    for (number, send) in clients.iter().enumerate().take(3) {
        assert_eq!((send().await, seen(number)), (Err(false), 1), "{}", NAMES[number]);
    }
}
