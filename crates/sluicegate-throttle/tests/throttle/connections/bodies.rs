//! Servers drop a body that has given all the bytes that it announced, without asking for more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Frame;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tower::{Layer, service_fn};

use super::until;

/// Gives two frames, works for a millisecond for each, and does not say that there are no more.
struct Endless(ManualClock, usize);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.1.checked_sub(1) else { return Poll::Pending };
        self.1 = left;
        self.0.advance(Duration::from_millis(1));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame")))))
    }
}

/// The microseconds that a request is measured to cost.
async fn cost_of(method: &str, answer_length: usize) -> u64 {
    let clock = ManualClock::new();
    let builder = Throttle::builder().in_flight(1).queue(Duration::from_millis(4));
    let throttle = builder.clock(&clock).build().unwrap();
    let handler = service_fn(move |_: Request<Incoming>| {
        clock.advance(Duration::from_millis(5));
        let response = Response::builder().header("content-length", "10");
        std::future::ready(response.body(Endless(clock.clone(), 2)))
    });
    let service = TowerToHyperService::new(throttle.layer().layer(handler));
    let (mut client, server) = duplex(1 << 16);
    tokio::spawn(
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), service),
    );
    let request = format!("{method} / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    client.read_exact(&mut vec![0; answer_length]).await.unwrap();
    // The connection is open, and nothing runs.
    until(&throttle, |snapshot| snapshot.running == 0).await;
    throttle.snapshot().actual_cost
}

#[tokio::test]
async fn a_body_that_is_as_long_as_announced_has_ended_and_is_learnt_from() {
    assert_eq!(cost_of("GET", 10).await, 7_000);
}

#[tokio::test]
async fn an_answer_to_head_has_ended_with_its_head_and_is_learnt_from() {
    assert_eq!(cost_of("HEAD", 0).await, 5_000);
}
