//! What a queued request takes beside the request itself, counted by the allocator in a program of its own.

use std::alloc::System;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluicegate::{Header, ManualClock};
use sluicegate_throttle::Throttle;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, Service};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// As many as fill the arrays that grow by doubling.
const QUEUED: usize = 1 << 14;

/// As many as fill a hash table, of which an eighth stays free.
const FLOWS: usize = QUEUED / 8 * 7;

#[derive(Clone)]
struct Handler;

impl Service<Request<()>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

#[test]
fn a_queued_request_takes_at_most_three_hundred_bytes_beside_the_request() {
    let builder = Throttle::builder().in_flight(1).queue_cost(u64::MAX / 4);
    let throttle = builder.clock(ManualClock::new()).build().unwrap();
    let layer = throttle.layer().fair_by(Header("x-customer")).deadline(Duration::from_secs(9));
    let mut service = layer.layer(Handler);
    let mut cx = Context::from_waker(Waker::noop());
    let _running = service.call(Request::new(()));

    let mut queued = Vec::with_capacity(QUEUED);
    let requests: Vec<_> = (0..QUEUED)
        .map(|number| Request::builder().header("x-customer", number % FLOWS).body(()).unwrap())
        .collect();
    let region = Region::new(ALLOCATOR);
    for request in requests {
        queued.push(service.call(request));
    }
    for future in &mut queued {
        assert!(Pin::new(future).poll(&mut cx).is_pending());
    }
    let change = region.change();
    assert_eq!(throttle.snapshot().queued, QUEUED);
    // The requests are in the futures now, and as much was freed with the list that held them.
    let each = (change.bytes_allocated - change.bytes_deallocated) / QUEUED;
    assert!((100..=300).contains(&each), "{each} bytes");
}
