//! Clients that tell a request that was lost from one that was never taken.

use std::net::SocketAddr;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::response::Parts;
use axum::http::{Request, Version, header};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was answered.
    Answered,
    /// It was answered, and the server takes no more on this connection.
    Last,
    /// It was answered: it is over its limit.
    Refused,
    /// The connection had ended before it was sent.
    NotTaken,
    /// It was sent, and there is no answer, or another one than was due.
    Lost,
}

/// A connection that is kept.
pub(crate) enum Client {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
    Grpc(http2::SendRequest<Body>),
}

const BODY: &str = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;

impl Client {
    pub(crate) async fn http_1(address: SocketAddr) -> Self {
        let (client, connection) =
            http1::handshake(TokioIo::new(stream(address).await)).await.expect("a handshake");
        tokio::spawn(connection);
        Self::Http1(client)
    }

    pub(crate) async fn http_2(address: SocketAddr) -> Self {
        Self::Http2(in_http_2(address).await)
    }

    pub(crate) async fn grpc(address: SocketAddr) -> Self {
        Self::Grpc(in_http_2(address).await)
    }

    /// One of gRPC that has a connection already.
    pub(crate) async fn grpc_over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::Grpc(over(stream).await)
    }

    /// Each kind of client.
    pub(crate) async fn all(http: SocketAddr, grpc: SocketAddr) -> [Self; 3] {
        [Self::http_1(http).await, Self::http_2(http).await, Self::grpc(grpc).await]
    }

    /// Sends a request that is within its limit.
    pub(crate) async fn send(&mut self) -> Sent {
        let answer = match self {
            Self::Http1(client) => {
                if client.ready().await.is_err() {
                    return Sent::NotTaken;
                }
                client.send_request(json(Version::HTTP_11)).await
            }
            Self::Http2(client) => {
                if client.ready().await.is_err() {
                    return Sent::NotTaken;
                }
                client.send_request(json(Version::HTTP_2)).await
            }
            Self::Grpc(client) => {
                if client.ready().await.is_err() {
                    return Sent::NotTaken;
                }
                client.send_request(call()).await
            }
        };
        let answer = match answer {
            Ok(answer) => answer,
            // The connection has said that it ends, and the request was never sent.
            Err(error) if error.is_canceled() || is_refused(&error) => return Sent::NotTaken,
            Err(error) => {
                eprintln!("no answer: {error:?}");
                return Sent::Lost;
            }
        };
        let (head, body) = answer.into_parts();
        let is_last = head.headers.get(header::CONNECTION).is_some_and(|value| value == "close");
        let body = to_bytes(Body::new(body), 1 << 20).await;
        match body {
            Ok(body) if is_refusal(&head, &body) => Sent::Refused,
            Ok(body) if head.status == 200 && !body.is_empty() => {
                if is_last {
                    Sent::Last
                } else {
                    Sent::Answered
                }
            }
            body => {
                eprintln!("not what was due: {head:?} {body:?}");
                Sent::Lost
            }
        }
    }
}

/// Whether an answer says that the request is over its limit. One of gRPC says so in its message.
fn is_refusal(head: &Parts, body: &[u8]) -> bool {
    let message = body.get(5..).and_then(|message| RateLimitResponse::decode(message).ok());
    let is_grpc =
        head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/grpc");
    let says_so = message.is_some_and(|message| message.overall_code() == Code::OverLimit);
    head.status == 429 || (is_grpc && says_so)
}

/// Whether the server has said that it has not looked at the request.
fn is_refused(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_farewell = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            return is_farewell || error.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        source = error.source();
    }
    false
}

async fn stream(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("a connection");
    // The head and the body of a request are sent apart, and must not wait for an acknowledgement.
    stream.set_nodelay(true).expect("a socket");
    stream
}

async fn in_http_2(address: SocketAddr) -> http2::SendRequest<Body> {
    over(stream(address).await).await
}

async fn over<S>(stream: S) -> http2::SendRequest<Body>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("a handshake");
    tokio::spawn(connection);
    client
}

fn json(version: Version) -> Request<Body> {
    let request = Request::post(if version == Version::HTTP_2 { "http://x/json" } else { "/json" });
    request.version(version).header(header::HOST, "x").body(Body::from(BODY)).expect("a request")
}

fn call() -> Request<Body> {
    let entry = Entry { key: "user".to_owned(), value: "a".to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    let domain = "edge".to_owned();
    let message = RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: 0 };
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).expect("a short message");
    let body = [&[0], &length.to_be_bytes()[..], &message].concat();
    Request::post("http://x/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
        .version(Version::HTTP_2)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(Body::from(Bytes::from(body)))
        .expect("a request")
}
