//! Clients that hang up at any point, read or send slowly, or wait to be asked for their body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use sluicegate_throttle::Throttle;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::yield_now;
use tower::{Layer, service_fn};

use super::{one_at_a_time, until};

/// Frames of a hundred bytes, and then trailers.
struct Frames(Option<usize>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.0 else { return Poll::Ready(None) };
        self.0 = left.checked_sub(1);
        let trailers = || HeaderMap::from_iter([(X_END, HeaderValue::from_static("here"))]);
        Poll::Ready(Some(Ok(match self.0 {
            Some(_) => Frame::data(Bytes::from_static(&[b'x'; 100])),
            None => Frame::trailers(trailers()),
        })))
    }
}

const X_END: http::HeaderName = http::HeaderName::from_static("x-end");

/// A server whose handler reads the request, and answers with one frame, or with very many to `/long`.
fn connect(throttle: &Throttle) -> DuplexStream {
    let (client, server) = duplex(1 << 10);
    let handler = service_fn(|request: Request<Incoming>| async move {
        let frames = if request.uri().path() == "/long" { 10_000 } else { 1 };
        request.into_body().collect().await?;
        let response = Response::builder().header("trailer", "x-end");
        Ok::<_, hyper::Error>(response.body(Frames(Some(frames))).unwrap())
    });
    let service = TowerToHyperService::new(throttle.layer().layer(handler));
    let http1 = hyper::server::conn::http1::Builder::new();
    tokio::spawn(http1.serve_connection(TokioIo::new(server), service));
    client
}

async fn send(client: &mut DuplexStream, text: &str) {
    client.write_all(text.as_bytes()).await.unwrap();
}

/// Holds the only place until it is dropped: its body does not come.
async fn hold(throttle: &Throttle) -> DuplexStream {
    let mut client = connect(throttle);
    send(&mut client, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n").await;
    until(throttle, |snapshot| snapshot.running == 1).await;
    client
}

/// Whether nothing has come, although the server had time to send something.
async fn is_silent(client: &mut DuplexStream) -> bool {
    let read = async { client.read_u8().await.map(drop) };
    let patience = async {
        for _ in 0..100 {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = read => false,
        () = patience => true,
    }
}

async fn read_to(client: &mut DuplexStream, end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        read.push(client.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn a_client_is_asked_for_its_body_when_its_request_starts_and_not_before() {
    let throttle = one_at_a_time();
    let holds = hold(&throttle).await;
    let mut client = connect(&throttle);
    let head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    send(&mut client, head).await;
    until(&throttle, |snapshot| snapshot.queued == 1).await;
    assert!(is_silent(&mut client).await);
    drop(holds);
    assert_eq!(read_to(&mut client, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    send(&mut client, "body").await;
    assert!(read_to(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_whose_request_is_shed_is_not_asked_for_its_body() {
    let throttle = one_at_a_time();
    let _holds = hold(&throttle).await;
    let mut queued = Vec::new();
    for number in 1..=4 {
        queued.push(connect(&throttle));
        send(&mut queued[number - 1], "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        until(&throttle, |snapshot| snapshot.queued == number).await;
    }
    let mut client = connect(&throttle);
    let head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    send(&mut client, head).await;
    assert!(read_to(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn clients_that_hang_up_at_any_byte_hold_nothing() {
    let throttle = one_at_a_time();
    let request = "POST /long HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody";
    for sent in 0..=request.len() {
        let mut client = connect(&throttle);
        send(&mut client, &request[..sent]).await;
        for _ in 0..5 {
            yield_now().await;
        }
        // The whole request is answered, and the answer is not read.
        drop(client);
        until(&throttle, |snapshot| snapshot.running + snapshot.queued == 0).await;
    }
    // While it waits, too.
    let holds = hold(&throttle).await;
    let mut client = connect(&throttle);
    send(&mut client, request).await;
    until(&throttle, |snapshot| snapshot.queued == 1).await;
    drop(client);
    until(&throttle, |snapshot| snapshot.queued == 0).await;
    drop(holds);
    until(&throttle, |snapshot| snapshot.running == 0).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_keeps_its_place_until_it_hangs_up() {
    let throttle = one_at_a_time();
    let mut client = connect(&throttle);
    send(&mut client, "GET /long HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until(&throttle, |snapshot| snapshot.running == 1).await;
    for _ in 0..100 {
        yield_now().await;
    }
    assert_eq!(throttle.snapshot().running, 1, "most of the answer has not been sent");
    drop(client);
    until(&throttle, |snapshot| snapshot.running == 0).await;
}

#[tokio::test]
async fn trailers_pass_and_end_the_request() {
    let throttle = one_at_a_time();
    let mut client = connect(&throttle);
    send(&mut client, "GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\n\r\n").await;
    let answer = read_to(&mut client, "x-end: here\r\n\r\n").await;
    assert!(answer.contains("transfer-encoding: chunked"), "{answer}");
    until(&throttle, |snapshot| snapshot.running == 0).await;
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.counts.started, snapshot.keys[0].requests), (1, 1));
}
