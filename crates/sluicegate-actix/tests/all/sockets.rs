//! What is held on real connections, and clients that close them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::{secs, store};
use actix_web::body::{BodySize, BodyStream, MessageBody};
use actix_web::dev::ServerHandle;
use actix_web::http::header;
use actix_web::rt::task::yield_now;
use actix_web::web::{Bytes, Payload};
use actix_web::{App, HttpResponse, HttpServer, web};
use sluicegate_actix::condition::InFlight;
use sluicegate_actix::rule::By;
use sluicegate_actix::service::InFlightMiddleware;
use sluicegate_actix::{Global, Limit, ManualClock, RateLimit, Rejection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Echoes what comes over the upgraded connection.
async fn echo(payload: Payload) -> HttpResponse {
    HttpResponse::SwitchingProtocols().upgrade("websocket").body(BodyStream::new(payload))
}

/// Streams for as long as the client is there.
struct Ticks;

impl MessageBody for Ticks {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Bytes, Self::Error>>> {
        std::task::Poll::Ready(Some(Ok(Bytes::from_static(b"data: tick\n\n"))))
    }
}

struct Server {
    address: SocketAddr,
    handle: ServerHandle,
    /// How often the handler of `/` ran.
    served: Arc<AtomicUsize>,
    load: InFlight,
}

impl Server {
    fn start(limit: RateLimit<By<Global>>, half_closed: bool) -> Self {
        let served = Arc::new(AtomicUsize::new(0));
        let load = InFlight::below(9);
        let (count, inside) = (Arc::clone(&served), load.clone());
        let server = HttpServer::new(move || {
            let count = Arc::clone(&count);
            App::new()
                .route(
                    "/",
                    web::to(move || {
                        count.fetch_add(1, Ordering::SeqCst);
                        async { "hello" }
                    }),
                )
                .route("/echo", web::get().to(echo))
                .route("/ticks", web::get().to(async || HttpResponse::Ok().body(Ticks)))
                .wrap(InFlightMiddleware::new(inside.clone()))
                .wrap(limit.clone())
        })
        .workers(1)
        .disable_signals()
        .h1_allow_half_closed(half_closed)
        .bind(("127.0.0.1", 0))
        .unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self { address, handle, served, load }
    }

    async fn ask(&self, path: &str, headers: &str) -> (TcpStream, String) {
        let mut stream = self.say(path, headers).await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    }

    async fn say(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn is_full(&self) -> bool {
        let (_, head) = self.ask("/", "").await;
        assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 429"), "{head}");
        head.starts_with("HTTP/1.1 429")
    }

    /// Closing a connection takes a moment.
    async fn becomes_free(&self) {
        while self.is_full().await {
            yield_now().await;
        }
        while self.load.count() > 0 {
            yield_now().await;
        }
    }
}

fn one_place() -> RateLimit<By<Global>> {
    RateLimit::new(Limit::concurrent(1).by(Global)).store(store().0)
}

#[actix_web::test]
async fn an_upgraded_connection_holds_its_place_until_it_is_closed() {
    let server = Server::start(one_place(), true);
    let upgrade = format!("{}: upgrade\r\n{}: websocket\r\n", header::CONNECTION, header::UPGRADE);
    let (mut stream, head) = server.ask("/echo", &upgrade).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    for _ in 0..3 {
        stream.write_all(b"ping").await.unwrap();
        let mut echo = [0; 4];
        stream.read_exact(&mut echo).await.unwrap();
        assert_eq!(&echo, b"ping");
        assert!(server.is_full().await);
        assert_eq!(server.load.count(), 1);
    }
    drop(stream);
    server.becomes_free().await;
    server.handle.stop(false).await;
}

#[actix_web::test]
async fn an_event_stream_holds_its_place_until_the_client_leaves() {
    let server = Server::start(one_place(), true);
    let (stream, head) = server.ask("/ticks", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for _ in 0..20 {
        assert!(server.is_full().await);
    }
    assert_eq!(server.load.count(), 1);
    drop(stream);
    server.becomes_free().await;
    server.handle.stop(false).await;
}

/// Admits one request a minute, and the next ones wait.
fn queue() -> (RateLimit<By<Global>>, ManualClock) {
    let (store, clock) = store();
    let rule = Limit::per_minute(1).by(Global);
    (RateLimit::new(rule).store(store).rejection(Rejection::queue(secs(600))), clock)
}

async fn five_wait(server: &Server, limit: &RateLimit<By<Global>>) -> Vec<TcpStream> {
    let (_, head) = server.ask("/", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(server.say("/", "").await);
    }
    while limit.waiting() < 5 {
        yield_now().await;
    }
    waiting
}

#[actix_web::test]
async fn who_closes_the_connection_leaves_the_queue_unless_half_closing_is_allowed() {
    let (limit, clock) = queue();
    let server = Server::start(limit.clone(), false);
    drop(five_wait(&server, &limit).await);
    while limit.waiting() > 0 {
        yield_now().await;
    }
    clock.advance(secs(600));
    assert_eq!(server.served.load(Ordering::SeqCst), 1, "no handler ran for them");
    let (_, head) = server.ask("/", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "their places are free: {head}");
    server.handle.stop(false).await;
}

/// What the crate's documentation says about actix-web's default: a middleware does not learn that the client has
/// closed its side, because such a client may still read.
#[actix_web::test]
async fn actix_web_by_default_keeps_who_has_closed_its_side_of_the_connection() {
    let (limit, clock) = queue();
    let server = Server::start(limit.clone(), true);
    let mut waiting = five_wait(&server, &limit).await;
    for stream in &mut waiting {
        stream.shutdown().await.unwrap();
    }
    for served in 2..=6 {
        assert!(limit.waiting() > 0);
        clock.advance(secs(60));
        while server.served.load(Ordering::SeqCst) < served {
            yield_now().await;
        }
    }
    for stream in &mut waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("hello"), "it can still read: {answer}");
    }
    server.handle.stop(false).await;
}
