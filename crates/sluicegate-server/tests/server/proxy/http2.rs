//! HTTP/2 on either side, and TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::support::{LONGEST, OK, Running, Upstream};

async fn speak<S, B>(stream: S) -> SendRequest<B>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    let (client, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    client
}

pub(super) async fn connect<B>(proxy: &Running) -> SendRequest<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    speak(TcpStream::connect(proxy.address).await.expect("a connection")).await
}

#[tokio::test]
async fn a_request_in_http2_becomes_one_in_http1() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = connect(&proxy).await;
    let request = Request::get("http://example.com/a?b=c").header("te", "trailers");
    let response = client.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    let head = upstream.head();
    assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nhost: example.com\r\n"), "{head}");
    assert!(head.contains("\r\nvia: 2 sluicegate\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn a_request_in_http2_has_one_host_and_one_length() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = connect(&proxy).await;
    let two_hosts = Request::get("http://a/").header("host", "b").body(Full::new(Bytes::new()));
    let response = client.send_request(two_hosts.unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let connect = Request::connect("a:80").body(Full::new(Bytes::new())).unwrap();
    let refused = client.send_request(connect).await;
    assert!(refused.is_err() || refused.is_ok_and(|response| !response.status().is_success()));
    // The body has more than the length says: HTTP/1 behind it would take the rest for a request.
    let smuggled = Bytes::from_static(b"GET /second HTTP/1.1\r\nhost: a\r\n\r\n");
    let frames = Unsized { data: Some(smuggled), trailers: None };
    let mut client = self::connect(&proxy).await;
    let request = Request::post("http://a/").header("content-length", "0").body(frames).unwrap();
    // The head may be answered before the stream is found to be broken.
    let _ = client.send_request(request).await;
    // A request on the same connection to the application comes after everything of the one before.
    let request = Request::get("http://a/last").body(Unsized::new(b"")).unwrap();
    let mut client = self::connect(&proxy).await;
    let _ = client.send_request(request).await.unwrap();
    assert!(!upstream.seen().concat().contains("/second"));
}

/// A body that says nothing about its length, and has trailers if it is the body of a response.
struct Unsized {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Unsized {
    fn new(data: &'static [u8]) -> Self {
        Self { data: Some(Bytes::from_static(data)), trailers: None }
    }
}

impl Body for Unsized {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        Poll::Ready(data.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_in_http2_becomes_chunks() {
    let upstream = Upstream::start(OK).await;
    let proxy = Running::start(upstream.address, "", "").await;
    let mut client = connect(&proxy).await;
    let request = Request::post("http://a/").body(Unsized::new(b"abc")).unwrap();
    assert_eq!(client.send_request(request).await.unwrap().status(), StatusCode::OK);
    while !upstream.seen().concat().ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n") {
        tokio::task::yield_now().await;
    }
    assert!(upstream.head().contains("\r\ntransfer-encoding: chunked\r\n"));
}

/// An application that speaks HTTP/2 alone, and answers with trailers, as gRPC does.
async fn http2_application() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(|request: Request<Incoming>| async move {
                assert!(request.headers().get("host").is_none(), "{request:?}");
                assert_eq!(request.headers()["te"], "trailers");
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let forwarded = request.headers()["x-forwarded-host"].clone();
                let body = request.into_body().collect().await?.to_bytes();
                let body = Unsized { data: Some(body), trailers: Some(trailers) };
                let response = Response::builder().header("x-host", forwarded).body(body);
                Ok::<_, hyper::Error>(response.unwrap())
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), answer));
        }
    });
    address
}

#[tokio::test]
async fn a_call_of_grpc_passes_with_its_trailers() {
    let proxy = Running::start(http2_application().await, "", "http2 = true").await;
    let mut client = connect(&proxy).await;
    let request = Request::post("http://example.com/x.Y/Z").header("te", "trailers");
    let request = request.body(Unsized::new(b"message")).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.headers()["x-host"], "example.com");
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes(), "message");
}

#[tokio::test]
async fn tls_offers_both_versions_and_the_application_is_told() {
    let files = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, secret) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&certificate, key.cert.pem()).unwrap();
    std::fs::write(&secret, key.signing_key.serialize_pem()).unwrap();
    let upstream = Upstream::start(OK).await;
    let tls = format!("tls = {{ certificate = {certificate:?}, key = {secret:?} }}");
    let proxy = Running::start(upstream.address, &tls, "").await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(proxy.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = speak(stream).await;
    let request = Request::get("https://localhost/").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(client.send_request(request).await.unwrap().status(), StatusCode::OK);
    assert!(upstream.head().contains("\r\nx-forwarded-proto: https\r\n"));
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const GOAWAY: u8 = 7;

/// The types of these frames.
fn kinds(mut frames: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, ..] = *frames {
        kinds.push(kind);
        let length = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        frames = frames.get(length..).unwrap_or_default();
    }
    kinds
}

#[tokio::test]
async fn an_idle_connection_in_http2_is_told_that_it_ends() {
    let upstream = Upstream::start(OK).await;
    let times = "idle_timeout = \"50 ms\"\nhead_timeout = \"500 ms\"";
    let proxy = Running::start(upstream.address, times, "").await;
    let mut client = proxy.connect().await;
    client.send([PREFACE, SETTINGS].concat()).await;
    // The client answers no ping, and the connection ends nevertheless.
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(LONGEST, client.0.read_to_end(&mut bytes)).await;
    let _ = read.expect("the connection is closed");
    assert!(kinds(&bytes).contains(&GOAWAY), "{bytes:?}");
}

/// A response of a megabyte.
fn large() -> &'static str {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
    Box::leak(format!("{head}{}", "x".repeat(1_000_000)).into_boxed_str())
}

/// Waits until the application's only place is free.
async fn place_is_free(proxy: &Running) {
    let free = async {
        loop {
            let answer = proxy.connect_and(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
            if answer.starts_with("HTTP/1.1 200 ") {
                break;
            }
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        }
    };
    tokio::time::timeout(LONGEST, free).await.expect("the place of the stalled request");
}

#[tokio::test]
async fn a_request_after_the_farewell_cannot_be_left_unread_either() {
    // One byte of each stream may be sent.
    const SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1];
    /// `GET http://a/` on the first stream.
    const REQUEST: &[u8] = &[0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a'];
    let upstream = Upstream::start(large()).await;
    let times = "idle_timeout = \"50 ms\"\nwrite_timeout = \"100 ms\"";
    let proxy = Running::start(upstream.address, times, "requests = 1").await;
    let mut client = proxy.connect().await;
    client.send([PREFACE, SETTINGS].concat()).await;
    let mut bytes = Vec::new();
    while !kinds(&bytes).contains(&GOAWAY) {
        bytes.push(client.0.read_u8().await.expect("a farewell"));
    }
    // The ping of the farewell is not answered.
    client.send(REQUEST).await;
    while upstream.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    place_is_free(&proxy).await;
}

#[tokio::test]
async fn a_client_that_never_reads_its_response_gives_its_place_back() {
    let upstream = Upstream::start(large()).await;
    let proxy =
        Running::start(upstream.address, "write_timeout = \"100 ms\"", "requests = 1").await;
    let stream = TcpStream::connect(proxy.address).await.expect("a connection");
    let mut builder = Builder::new(TokioExecutor::new());
    // The client asks for one byte.
    builder.initial_stream_window_size(1);
    let (mut client, connection) = builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = Request::get("http://a/").body(Empty::<Bytes>::new()).unwrap();
    let stalled = client.send_request(request).await.expect("a response");
    assert_eq!(stalled.status(), StatusCode::OK);
    place_is_free(&proxy).await;
    // What is left never looks like all of it.
    stalled.into_body().collect().await.expect_err("a broken body");
}
