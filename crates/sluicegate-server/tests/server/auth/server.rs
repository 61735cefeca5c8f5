//! A server on free ports with a file of rules, and what proxies ask it.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::{Policies, Server, Service, ServiceBuilder};
use tonic::transport::Channel;

pub(crate) struct Running {
    pub(crate) grpc: AuthorizationClient<Channel>,
    pub(crate) clock: ManualClock,
    http: String,
}

/// What a proxy gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

pub(crate) async fn start(rules: &str) -> Running {
    start_with(rules, |service| service).await
}

pub(crate) async fn start_with(
    rules: &str,
    set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
) -> Running {
    start_until(rules, set, std::future::pending()).await
}

/// A server that goes on for long after it is asked to stop.
pub(crate) async fn start_until(
    rules: &str,
    set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Running {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, rules).expect("a file");
    let clock = ManualClock::new();
    let policies = Policies::new().rules(&file).unwrap_or_else(|error| panic!("{error}"));
    let service = Service::builder(policies).store(Memory::builder().clock(&clock).build());
    let service = set(service).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let server = Server::new(service).grpc(any).http(any).drain_delay(Duration::from_secs(600));
    let bound = server.bind().await.expect("free ports");
    let addresses = bound.addresses();
    let grpc = format!("http://{}", addresses.grpc.expect("a port"));
    let http = addresses.http.expect("a port").to_string();
    tokio::spawn(bound.run(stop));
    let grpc = AuthorizationClient::connect(grpc).await.expect("a connection");
    Running { grpc, clock, http }
}

impl Running {
    /// Asks at `path` with these fields.
    pub(crate) async fn ask(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().uri(format!("http://{}{path}", self.http));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).expect("a request")).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response: Response<_> = client.request(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let body = to_bytes(Body::new(body), 1 << 20).await.expect("a body");
        let body = String::from_utf8(body.into()).expect("text");
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Asks as Traefik and Caddy do, about a GET of `uri` by the client at `address`.
    pub(crate) async fn forwarded(&self, uri: &str, address: &str) -> Answer {
        self.ask("/check", &forwarded("GET", uri, address)).await
    }

    pub(crate) fn address(&self) -> &str {
        &self.http
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }
}

pub(crate) fn forwarded<'a>(
    method: &'a str,
    uri: &'a str,
    address: &'a str,
) -> [(&'a str, &'a str); 4] {
    [
        ("x-forwarded-method", method),
        ("x-forwarded-uri", uri),
        ("x-forwarded-host", "api.example"),
        ("x-forwarded-for", address),
    ]
}
