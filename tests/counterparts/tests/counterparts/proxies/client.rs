//! A client of a proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// Gets `path` as the client at `127.0.0.N`.
pub(crate) async fn get_as(
    client: u8,
    address: SocketAddr,
    path: &str,
    fields: &[(&str, &str)],
) -> Answer {
    let mut connector = HttpConnector::new();
    connector.set_local_address(Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, client))));
    let mut request = Request::builder().uri(format!("http://{address}{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let (head, body) = client.request(request).await.expect("an answer").into_parts();
    let body = to_bytes(Body::new(body), 1 << 20).await.expect("a body");
    let body = String::from_utf8(body.into()).expect("text");
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    get_as(1, address, path, &[]).await
}

/// Sends these bytes, which may be no valid request, and returns the status.
pub(crate) async fn send(address: SocketAddr, bytes: impl AsRef<[u8]>) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes.as_ref()).await.expect("a request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status: {answer}"))
}

/// Statuses of requests that claim another client, target, host or method in each field that one of the proxies uses.
///
/// The address of the client has spent its limit before.
pub(crate) async fn get_disguised(address: SocketAddr, path: &str) -> Vec<u16> {
    let claims = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-for", "203.0.113.9, 127.0.0.9"),
        ("x-real-ip", "203.0.113.9"),
        ("x-envoy-external-address", "203.0.113.9"),
        ("x-envoy-original-path", "/free"),
        ("forwarded", "for=203.0.113.9"),
        ("x-forwarded-uri", "/free"),
        ("x-forwarded-method", "OPTIONS"),
        ("x-forwarded-host", "free.example"),
        ("x-original-uri", "/free"),
        ("x-original-method", "OPTIONS"),
        ("x-original-host", "free.example"),
        ("x-rewrite-url", "/free"),
        ("connection", "close, x-forwarded-for, x-original-uri, x-forwarded-uri"),
    ];
    let mut statuses = Vec::new();
    for claim in claims {
        statuses.push(get_as(1, address, path, &[claim]).await.status);
    }
    statuses.push(get_as(1, address, path, &claims[..13]).await.status);
    statuses
}
