//! What is held on real connections: until the body has been sent, or the upgraded connection has closed.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{any, get};
use http_body_util::channel::Channel;
use hyper_util::rt::TokioIo;
use sluicegate_axum::adapter::Hold;
use sluicegate_axum::condition::InFlight;
use sluicegate_axum::service::InFlightLayer;
use sluicegate_axum::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, yield_now};

/// Echoes what comes over the upgraded connection, in one task or two.
async fn echo(mut request: Request) -> Response {
    let on_upgrade = hyper::upgrade::on(&mut request);
    let in_two_tasks = request.uri().path() == "/echo/split";
    tokio::spawn(async move {
        let upgraded = TokioIo::new(on_upgrade.await.unwrap());
        let (mut reader, mut writer) = split(upgraded);
        if in_two_tasks {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            tokio::spawn(async move {
                while let Some(byte) = receiver.recv().await {
                    writer.write_u8(byte).await.unwrap();
                }
            });
            while let Ok(byte) = reader.read_u8().await {
                sender.send(byte).unwrap();
            }
        } else {
            copy(&mut reader, &mut writer).await.unwrap();
        }
    });
    switching()
}

fn switching() -> Response {
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "echo")
        .body(Body::empty())
        .unwrap()
}

/// Speaks first, before the client has said anything.
async fn greet(request: Request) -> Response {
    tokio::spawn(async move {
        let mut upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        upgraded.write_all(b"hello").await.unwrap();
        upgraded.flush().await.unwrap();
        // Until the client has gone.
        let _ = upgraded.read_u8().await;
    });
    switching()
}

/// Streams for as long as the client is there.
async fn events() -> Response {
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
    tokio::spawn(async move {
        while sender.send_data(Bytes::from_static(b"data: tick\n\n")).await.is_ok() {
            yield_now().await;
        }
    });
    Response::new(Body::new(body))
}

fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", any(echo))
        .route("/echo/split", any(echo))
        .route("/greet", any(greet))
        .route("/events", get(events))
        // Asked to upgrade, it does not.
        .route("/declined", any(|| async { "no" }))
        // It says so, and does not do it.
        .route("/forgotten", any(|| async { switching() }))
}

struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { address, task }
    }

    /// A server with one place for all clients.
    async fn with_one_place() -> Self {
        let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
        let layer = RateLimitLayer::new(Limit::concurrent(1).by(Global)).store(store);
        Self::start(routes().layer(layer)).await
    }

    async fn ask(&self, method: &str, path: &str, headers: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = say(&mut stream, method, path, headers).await;
        (stream, head)
    }

    async fn upgrade(&self, path: &str) -> TcpStream {
        let (stream, head) = self.ask("GET", path, UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        stream
    }

    async fn is_full(&self) -> bool {
        let (_, head) = self.ask("GET", "/", "").await;
        assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 429"), "{head}");
        head.starts_with("HTTP/1.1 429")
    }

    /// Closing a connection takes a moment.
    async fn becomes_free(&self) {
        while self.is_full().await {
            yield_now().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const UPGRADE: &str = "connection: upgrade\r\nupgrade: echo\r\n";

/// Sends a request, and reads the head of the response.
async fn say(stream: &mut TcpStream, method: &str, path: &str, headers: &str) -> String {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase().replace("http/1.1", "HTTP/1.1")
}

async fn echoes(stream: &mut TcpStream) {
    stream.write_all(b"ping").await.unwrap();
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"ping");
}

#[tokio::test]
async fn an_upgraded_connection_holds_its_place_until_it_is_closed() {
    for path in ["/echo", "/echo/split"] {
        let server = Server::with_one_place().await;
        let mut stream = server.upgrade(path).await;
        assert!(server.is_full().await);
        for _ in 0..3 {
            echoes(&mut stream).await;
            assert!(server.is_full().await, "{path}");
        }
        let (_, head) = server.ask("GET", path, UPGRADE).await;
        assert!(head.starts_with("HTTP/1.1 429"), "{head}");
        drop(stream);
        server.becomes_free().await;
        echoes(&mut server.upgrade(path).await).await;
    }
}

#[tokio::test]
async fn a_server_that_speaks_first_on_an_upgraded_connection_is_heard() {
    let server = Server::with_one_place().await;
    let mut stream = server.upgrade("/greet").await;
    let mut greeting = [0; 5];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"hello");
    assert!(server.is_full().await);
    drop(stream);
    server.becomes_free().await;
}

#[tokio::test]
async fn bytes_sent_right_behind_the_request_reach_the_upgraded_connection() {
    let server = Server::with_one_place().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /echo HTTP/1.1\r\nhost: localhost\r\n{UPGRADE}\r\nearly");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nearly") {
        answer.push(stream.read_u8().await.unwrap());
    }
}

#[tokio::test]
async fn an_upgrade_that_does_not_happen_holds_nothing_once_it_is_answered() {
    let server = Server::with_one_place().await;
    // The connection is kept alive, so that its end is not what gives the place back.
    let (mut stream, head) = server.ask("GET", "/declined", UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut body = [0; 2];
    stream.read_exact(&mut body).await.unwrap();
    server.becomes_free().await;
    drop(stream);
    let (_stream, head) = server.ask("GET", "/forgotten", UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    server.becomes_free().await;
}

#[tokio::test]
async fn a_refused_upgrade_is_answered_and_the_connection_goes_on() {
    let server = Server::with_one_place().await;
    let held = server.upgrade("/echo").await;
    let (mut stream, head) = server.ask("GET", "/echo", UPGRADE).await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    drop(held);
    server.becomes_free().await;
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let head = say(&mut stream, "GET", "/", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

#[tokio::test]
async fn an_event_stream_holds_its_place_until_the_client_leaves() {
    let server = Server::with_one_place().await;
    let (stream, head) = server.ask("GET", "/events", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for _ in 0..20 {
        assert!(server.is_full().await);
    }
    drop(stream);
    server.becomes_free().await;
}

#[tokio::test]
async fn a_head_request_for_a_stream_holds_nothing_once_it_is_answered() {
    let server = Server::with_one_place().await;
    let (mut stream, head) = server.ask("HEAD", "/events", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    server.becomes_free().await;
    let head = say(&mut stream, "GET", "/", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-length: 5"), "a body with a place is as long: {head}");
}

#[tokio::test]
async fn with_hold_head_streams_and_upgrades_hold_nothing() {
    let layer = RateLimitLayer::new(Limit::concurrent(1).by(Global)).hold_until(Hold::Head);
    let server = Server::start(routes().layer(layer)).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(server.upgrade("/echo").await);
        streams.push(server.ask("GET", "/events", "").await.0);
        assert!(!server.is_full().await);
    }
}

#[tokio::test]
async fn what_is_under_way_counts_streams_and_upgraded_connections() {
    let load = InFlight::below(9);
    // Several layers: each wraps the connection again.
    let router = routes().layer(InFlightLayer::new(load.clone()));
    let places = RateLimitLayer::new(Limit::concurrent(5).by(Global));
    let server = Server::start(router.layer(places)).await;
    let mut upgraded = server.upgrade("/echo").await;
    let events = server.ask("GET", "/events", "").await;
    echoes(&mut upgraded).await;
    assert_eq!(load.count(), 2);
    drop(upgraded);
    while load.count() > 1 {
        yield_now().await;
    }
    drop(events);
    while load.count() > 0 {
        yield_now().await;
    }
}
