//! Counting what is in flight, and a limit that is more generous while the count is low.

use std::convert::Infallible;
use std::future::{Pending, Ready, pending, ready};
use std::task::{Context, Poll};

use super::common::{CLIENT, app, get, secs, send, store};
use http::{Request, Response};
use sluicegate::condition::{InFlight, Not};
use sluicegate::rule::choose;
use sluicegate::service::InFlightLayer;
use sluicegate::{Limit, RateLimitLayer};
use tokio_test::{assert_pending, assert_ready, task};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

#[tokio::test]
async fn a_request_counts_from_its_call_to_its_response_until_the_head() {
    let load = InFlight::below(9);
    let seen = load.clone();
    let mut service =
        InFlightLayer::new(load.clone()).until_head().layer(tower::service_fn(move |_: ()| {
            let within_the_call = seen.count();
            let seen = seen.clone();
            async move { Ok::<_, Infallible>((within_the_call, seen.count())) }
        }));
    let mut future = Box::pin(service.ready().await.unwrap().call(()));
    assert_eq!(load.count(), 1, "before it is polled");
    assert_eq!(future.as_mut().await, Ok((1, 1)));
    assert_eq!(load.count(), 0, "although the future is still there");
}

#[tokio::test]
async fn a_request_whose_client_has_gone_counts_no_more() {
    let load = InFlight::below(9);
    let service = InFlightLayer::new(load.clone())
        .until_head()
        .layer(tower::service_fn(|_: ()| pending::<Result<(), Infallible>>()));
    let mut futures: Vec<_> = (0..3).map(|_| task::spawn(service.clone().oneshot(()))).collect();
    for future in &mut futures {
        assert_pending!(future.poll());
    }
    assert_eq!(load.count(), 3);
    drop(futures.pop());
    assert_eq!(load.count(), 2);
    drop(futures);
    assert_eq!(load.count(), 0);
}

#[tokio::test]
async fn an_error_is_the_inner_services_own_and_counts_no_more() {
    let load = InFlight::below(9);
    let service = InFlightLayer::new(load.clone())
        .until_head()
        .layer(tower::service_fn(|_: ()| ready(Err::<(), _>("failed"))));
    assert_eq!(service.oneshot(()).await, Err("failed"));
    assert_eq!(load.count(), 0);
}

/// Ready once after each time it was asked.
#[derive(Default)]
struct Strict {
    ready: bool,
}

impl Service<()> for Strict {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been made ready");
        ready(Ok(()))
    }
}

#[tokio::test]
async fn the_service_that_was_made_ready_is_the_one_that_is_called() {
    let mut service = InFlightLayer::new(InFlight::below(1)).until_head().layer(Strict::default());
    for _ in 0..3 {
        service.ready().await.unwrap().call(()).await.unwrap();
    }
}

#[tokio::test]
async fn what_waits_until_the_service_is_ready_does_not_count() {
    let load = InFlight::below(9);
    let inner = tower::service_fn(|_: ()| -> Pending<Result<(), Infallible>> { pending() });
    let service =
        InFlightLayer::new(load.clone()).until_head().layer(ConcurrencyLimit::new(inner, 1));
    let mut first = task::spawn(service.clone().oneshot(()));
    let mut second = task::spawn(service.clone().oneshot(()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_eq!(load.count(), 1);
    drop(first);
    assert!(second.is_woken());
    assert_pending!(second.poll());
    assert_eq!(load.count(), 1);
}

#[tokio::test]
async fn limits_of_one_name_count_together_when_the_room_is_gone() {
    let (store, _clock) = store();
    let load = InFlight::below(1);
    let room = load.clone();
    let elastic = choose(move |_: &Request<String>| {
        Limit::sliding_window(if room.has_capacity() { 5 } else { 2 }, secs(60)).named("api")
    });
    let app = app(RateLimitLayer::new(elastic.by(CLIENT)).store(store));
    for _ in 0..3 {
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
    }
    let busy = load.enter();
    assert_eq!(send(&app, "/", "alice").await.status(), 429, "three are more than two");
    assert_eq!(send(&app, "/", "bob").await.status(), 200);
    drop(busy);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    assert_eq!(send(&app, "/", "alice").await.status(), 429);
}

#[tokio::test]
async fn what_the_layer_counts_is_what_the_limit_gives_way_to() {
    let (store, _clock) = store();
    let load = InFlight::below(2);
    let strict = Limit::fixed_window(1, secs(60)).by(CLIENT).when(Not(load.clone()));
    // A request for `/wait` is never answered.
    let handler = tower::service_fn(|request: Request<String>| async move {
        match request.uri().path() {
            "/wait" => pending().await,
            _ => Ok::<_, Infallible>(Response::new(String::new())),
        }
    });
    let app =
        RateLimitLayer::new(strict).store(store).layer(InFlightLayer::new(load).layer(handler));
    let ask = |path| task::spawn(app.clone().oneshot(get(path, "alice")));
    let status = |path| assert_ready!(ask(path).poll()).unwrap().status().as_u16();

    assert_eq!([status("/"), status("/"), status("/")], [200; 3], "nothing is under way");
    let mut slow = [ask("/wait"), ask("/wait")];
    for slow in &mut slow {
        assert_pending!(slow.poll());
    }
    assert_eq!([status("/"), status("/")], [200, 429]);
    drop(slow);
    assert_eq!([status("/"), status("/")], [200; 2]);
}
