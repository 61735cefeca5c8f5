//! Clients that share the connections to an application of HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::server::conn::http2::Builder as ServerBuilder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::http2::connect;
use super::support::{LONGEST, Running};

/// A body of short pieces that never ends.
struct Endless {
    pieces: usize,
    /// Gets a permit once every piece is on its way.
    reached: Arc<Semaphore>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.pieces.checked_sub(1) else {
            self.reached.add_permits(1);
            return Poll::Pending;
        };
        self.pieces = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"ten bytes.")))))
    }
}

/// The length of a field that is too long for the default of hyper.
const LONG: usize = 40_000;

type Answer = Either<Full<Bytes>, Endless>;

/// An application that speaks HTTP/2 alone, with as many streams on a connection as it says.
struct Application {
    address: SocketAddr,
    /// Lets a request for `/later` be answered.
    later: Arc<Semaphore>,
    /// Has a permit once a request for `/later` has come, or every piece of a response to `/pieces` is on its way.
    reached: Arc<Semaphore>,
    /// Has the connections that are open say nothing more.
    vanished: Arc<Notify>,
}

impl Application {
    async fn start(streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (later, reached) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let vanished = Arc::new(Notify::new());
        let (answers, ends) = (Arc::clone(&later), Arc::clone(&reached));
        let vanishes = Arc::clone(&vanished);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (later, reached) = (Arc::clone(&answers), Arc::clone(&ends));
                let answer = service_fn(move |request: Request<Incoming>| {
                    let (later, reached) = (Arc::clone(&later), Arc::clone(&reached));
                    async move { Ok::<_, Infallible>(answer(request, &later, reached).await) }
                });
                let mut builder = ServerBuilder::new(TokioExecutor::new());
                // A request that is not read waits in the proxy, and holds up no other on this side.
                builder
                    .max_concurrent_streams(streams)
                    .initial_stream_window_size(65_535)
                    .initial_connection_window_size(1 << 30);
                let serving = builder.serve_connection(TokioIo::new(stream), answer);
                let vanished = Arc::clone(&vanishes);
                tokio::spawn(async move {
                    let mut serving = pin!(serving);
                    tokio::select! {
                        _ = &mut serving => {}
                        // Neither read nor closed.
                        () = vanished.notified() => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, later, reached, vanished }
    }
}

async fn answer(
    request: Request<Incoming>,
    later: &Semaphore,
    reached: Arc<Semaphore>,
) -> Response<Answer> {
    let full = |bytes: Vec<u8>| Response::new(Either::Left(Full::new(Bytes::from(bytes))));
    match request.uri().path() {
        "/large" => full(vec![b'x'; 1_000_000]),
        "/pieces" => Response::new(Either::Right(Endless { pieces: 3_000, reached })),
        "/endless" => Response::new(Either::Right(Endless { pieces: 1, reached })),
        "/head" => {
            let mut response = full(b"ok".to_vec());
            let long = HeaderValue::from_str(&"x".repeat(LONG)).expect("a value");
            response.headers_mut().insert("x-long", long);
            response
        }
        "/later" => {
            reached.add_permits(1);
            later.acquire().await.expect("permits").forget();
            full(b"late".to_vec())
        }
        // The body of the request stays unread.
        "/unread" => {
            let _request = request;
            std::future::pending().await
        }
        _ => {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            full(body.len().to_string().into_bytes())
        }
    }
}

type Client = SendRequest<Full<Bytes>>;

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://a{path}")).body(Full::default()).expect("a request")
}

fn post(path: &str, length: usize) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::from(vec![b'x'; length]));
    Request::post(format!("http://a{path}")).body(body).expect("a request")
}

/// A client that asks for one byte of each response.
async fn stalled(proxy: &Running) -> Client {
    let stream = TcpStream::connect(proxy.address).await.expect("a connection");
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1);
    let (client, connection) = builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    client
}

/// The whole answer to a request.
async fn answered(client: &mut Client, request: Request<Full<Bytes>>) -> (StatusCode, Bytes) {
    let answered = async {
        let response = client.send_request(request).await.expect("a response");
        let status = response.status();
        (status, response.into_body().collect().await.expect("a whole body").to_bytes())
    };
    timeout(LONGEST, answered).await.expect("an answer in time")
}

const PATIENT: &str = "write_timeout = \"1 day\"";

#[tokio::test]
async fn responses_that_one_client_does_not_read_hold_up_no_other() {
    let application = Application::start(200).await;
    let one = "http2 = true\nidle_connections = 1";
    let proxy = Running::start(application.address, PATIENT, one).await;
    let mut reader = connect(&proxy).await;
    let mut client = stalled(&proxy).await;
    let mut unread = Vec::new();
    for _ in 0..40 {
        unread.push(client.send_request(get("/large")).await.expect("a head"));
    }
    assert_eq!(answered(&mut reader, post("/", 3)).await, (StatusCode::OK, "3".into()));
}

#[tokio::test]
async fn short_frames_that_one_client_does_not_read_end_no_other_request() {
    let application = Application::start(200).await;
    let one = "http2 = true\nidle_connections = 1";
    let proxy = Running::start(application.address, PATIENT, one).await;
    let mut reader = connect(&proxy).await;
    let mut waiting = reader.clone();
    let waiting = tokio::spawn(async move { answered(&mut waiting, get("/later")).await });
    let mut client = stalled(&proxy).await;
    let unread = client.send_request(get("/pieces")).await.expect("a head");
    let all = application.reached.acquire_many(2);
    drop(timeout(LONGEST, all).await.expect("the other request, and all pieces"));
    // Until the proxy has got them too.
    for _ in 0..20_000 {
        tokio::task::yield_now().await;
    }
    application.later.add_permits(1);
    assert_eq!(waiting.await.expect("no panic"), (StatusCode::OK, "late".into()));
    assert_eq!(answered(&mut reader, get("/")).await, (StatusCode::OK, "0".into()));
    drop(unread);
}

#[tokio::test]
async fn bodies_that_the_application_does_not_read_hold_up_no_other_of_their_connection() {
    let application = Application::start(200).await;
    let proxy = Running::start(application.address, "", "http2 = true").await;
    let mut client = connect(&proxy).await;
    for _ in 0..40 {
        tokio::spawn(client.send_request(post("/unread", 1_000_000)));
    }
    let answer = answered(&mut client, post("/", 100_000)).await;
    assert_eq!(answer, (StatusCode::OK, "100000".into()));
}

#[tokio::test]
async fn responses_that_never_end_keep_no_other_request_waiting() {
    const STREAMS: u32 = 8;
    let application = Application::start(STREAMS).await;
    let proxy = Running::start(application.address, "", "http2 = true").await;
    let mut client = connect(&proxy).await;
    let mut endless = Vec::new();
    for _ in 0..STREAMS {
        endless.push(client.send_request(get("/endless")).await.expect("a head"));
    }
    let mut other = connect(&proxy).await;
    assert_eq!(answered(&mut other, get("/")).await, (StatusCode::OK, "0".into()));
}

#[tokio::test]
async fn a_connection_whose_application_has_vanished_gets_no_further_requests() {
    let application = Application::start(200).await;
    let more = "http2 = true\nresponse_timeout = \"1 s\"";
    let proxy = Running::start(application.address, "", more).await;
    let mut client = connect(&proxy).await;
    assert_eq!(answered(&mut client, get("/")).await.0, StatusCode::OK);
    application.vanished.notify_waiters();
    tokio::time::pause();
    let served = async { while answered(&mut client, get("/")).await.0 != StatusCode::OK {} };
    let two_minutes = async {
        for _ in 0..1_200 {
            // Sockets are not on the paused clock. A runtime that is idle would turn it before their bytes have come.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = two_minutes => panic!("every request went to the connection that has vanished"),
    }
}

#[tokio::test]
async fn an_application_that_is_slow_loses_no_request() {
    let application = Application::start(200).await;
    let proxy = Running::start(application.address, "", "http2 = true").await;
    let mut client = connect(&proxy).await;
    let mut waiting = client.clone();
    let waiting = tokio::spawn(async move { answered(&mut waiting, get("/later")).await });
    application.reached.acquire().await.expect("a permit").forget();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    assert_eq!(answered(&mut client, get("/")).await, (StatusCode::OK, "0".into()));
    application.later.add_permits(1);
    assert_eq!(waiting.await.expect("no panic"), (StatusCode::OK, "late".into()));
}

#[tokio::test]
async fn the_head_of_a_response_may_be_as_long_in_http2_as_in_http1() {
    let application = Application::start(200).await;
    let proxy = Running::start(application.address, "", "http2 = true").await;
    let request = b"GET /head HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = proxy.answer(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.len() > LONG, "{answer}");
}
