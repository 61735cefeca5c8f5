//! One connection of HTTP/2 carries many requests: each is queued, shed and left for itself.

use std::convert::Infallible;

use http::{Request, Response};
use http_body_util::{Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use sluicegate_throttle::Throttle;
use tokio::io::duplex;
use tower::{Layer, service_fn};

use super::{one_at_a_time, until};

/// A server whose handler never ends, but for `/short`.
async fn connect(throttle: &Throttle) -> SendRequest<Empty<Bytes>> {
    let (client, server) = duplex(1 << 16);
    let handler = service_fn(|request: Request<Incoming>| async move {
        if request.uri().path() != "/short" {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("well")))
    });
    let service = TowerToHyperService::new(throttle.layer().layer(handler));
    let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    tokio::spawn(http2.serve_connection(TokioIo::new(server), service));
    let http2 = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = http2.handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://localhost{path}")).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn many_streams_of_one_connection_fill_the_queue_and_no_more() {
    let throttle = one_at_a_time();
    let mut client = connect(&throttle).await;
    let mut send = || tokio::spawn(client.send_request(get("/endless")));
    let held: Vec<_> = (0..5).map(|_| send()).collect();
    until(&throttle, |snapshot| snapshot.queued == 4).await;
    for shed in (0..100).map(|_| send()).collect::<Vec<_>>() {
        assert_eq!(shed.await.unwrap().unwrap().status(), 503);
    }
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.running, snapshot.queued), (1, 4));
    // Each stream that is reset leaves for itself.
    held.iter().for_each(tokio::task::JoinHandle::abort);
    until(&throttle, |snapshot| snapshot.running + snapshot.queued == 0).await;
    let answer = tokio::spawn(client.send_request(get("/short"))).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_at_once_leave_nothing_behind() {
    let throttle = one_at_a_time();
    let mut client = connect(&throttle).await;
    for _ in 0..20 {
        let streams: Vec<_> =
            (0..10).map(|_| tokio::spawn(client.send_request(get("/endless")))).collect();
        tokio::task::yield_now().await;
        streams.iter().for_each(tokio::task::JoinHandle::abort);
    }
    drop(client);
    until(&throttle, |snapshot| snapshot.running + snapshot.queued == 0).await;
    let snapshot = throttle.snapshot();
    let counts = snapshot.counts;
    assert_eq!(snapshot.queued_cost, 0);
    assert_eq!(counts.offered, counts.started + counts.cancelled + counts.all_shed());
}

#[tokio::test]
async fn a_connection_that_is_closed_leaves_with_all_of_its_requests() {
    let throttle = one_at_a_time();
    let mut first = connect(&throttle).await;
    let held: Vec<_> = (0..3).map(|_| tokio::spawn(first.send_request(get("/endless")))).collect();
    until(&throttle, |snapshot| snapshot.queued == 2).await;
    let mut second = connect(&throttle).await;
    let waits = tokio::spawn(second.send_request(get("/short")));
    until(&throttle, |snapshot| snapshot.queued == 3).await;
    held.iter().for_each(tokio::task::JoinHandle::abort);
    drop(first);
    assert_eq!(waits.await.unwrap().unwrap().status(), 200);
}
