//! Requests that wait: in order, bounded, and never in vain.

use std::convert::Infallible;
use std::task::{Context, Poll};

use super::common::{CLIENT, app, get, millis, secs, send, store};
use http::{Request, Response};
use sluicegate::store::OnStoreError;
use sluicegate::{Limit, ManualClock, Memory, RateLimitLayer, Rejection};
use sluicegate_tests::stores::{Manner, TestStore};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};

#[tokio::test]
async fn a_second_window_waits_in_the_queue_by_every_algorithm() {
    let limits = [
        Limit::per_second(10),
        Limit::fixed_window(10, secs(1)),
        Limit::sliding_log(10, secs(1)),
        Limit::sliding_window(10, secs(1)),
    ];
    for (limit, place) in limits.into_iter().flat_map(|limit| [0, 510, 990].map(|at| (limit, at))) {
        let (store, clock) = store();
        clock.advance(millis(place));
        let layer =
            RateLimitLayer::new(limit.by(CLIENT)).store(store).rejection(Rejection::queue(secs(2)));
        let counts = layer.clone();
        let app = app(layer);
        for _ in 0..10 {
            assert_eq!(send(&app, "/", "alice").await.status(), 200);
        }
        let mut waiting: Vec<_> =
            (0..10).map(|_| task::spawn(app.clone().oneshot(get("/", "alice")))).collect();
        for waiter in &mut waiting {
            assert_pending!(waiter.poll());
        }
        assert_eq!(counts.waiting(), 10, "{limit} at {place}");
        clock.advance(secs(2));
        for waiter in &mut waiting {
            assert_eq!(assert_ready!(waiter.poll()).unwrap().status(), 200, "{limit} at {place}");
        }
    }
}

#[tokio::test]
async fn the_queue_is_bounded_in_length_and_then_redirects() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_second(10).burst(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(60)).at_most(3).then(Rejection::redirect("/busy")));
    let app = app(layer);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    let mut waiting: Vec<_> =
        (0..3).map(|_| task::spawn(app.clone().oneshot(get("/", "alice")))).collect();
    for waiter in &mut waiting {
        assert_pending!(waiter.poll());
    }
    assert_eq!(send(&app, "/", "alice").await.status(), 307);
    waiting.pop();
    let mut next = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(next.poll());
}

#[tokio::test]
async fn a_request_whose_client_has_gone_gives_its_place_back() {
    let (store, clock) = store();
    let layer = RateLimitLayer::new(Limit::sliding_log(1, secs(10)).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(25)));
    let app = app(layer);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    let mut gone = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(gone.poll());
    drop(gone);
    let mut next = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(next.poll());
    clock.advance(secs(10));
    assert_eq!(assert_ready!(next.poll()).unwrap().status(), 200);
}

/// Somebody waits behind each of them, so that none can be given back.
#[tokio::test]
async fn turns_that_are_booked_and_left_are_no_further_ahead_than_a_request_may_wait() {
    let (store, clock) = store();
    let layer = RateLimitLayer::new(Limit::per_second(10).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(10)).at_most(2));
    let app = app(layer);
    for _ in 0..10 {
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
    }
    let ask = || {
        let mut asked = task::spawn(app.clone().oneshot(get("/", "alice")));
        asked.poll().is_pending().then_some(asked)
    };
    let mut last = ask();
    let mut booked = 0;
    while last.is_some() {
        booked += 1;
        last = ask();
    }
    assert_eq!(booked, 100);
    assert_eq!(send(&app, "/", "bob").await.status(), 200, "another key");
    clock.advance(secs(10));
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
}

/// Two bounds on one queue: the bucket's, for each key, and the layer's, for all of them.
#[tokio::test]
async fn who_waits_in_a_leaky_bucket_waits_in_the_layers_queue() {
    for (rejection, most) in [
        (Rejection::queue(secs(1)).at_most(5), 5),
        (Rejection::queue(millis(300)), 3),
        (Rejection::queue(secs(1)), 10),
        (Rejection::block(), 20),
    ] {
        let (store, clock) = store();
        let layer = RateLimitLayer::new(Limit::leaky_bucket(10, secs(1)).queue(20).by(CLIENT))
            .store(store)
            .rejection(rejection);
        let counts = layer.clone();
        let app = app(layer);
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
        let mut asked: Vec<_> =
            (0..50).map(|_| task::spawn(app.clone().oneshot(get("/", "alice")))).collect();
        asked.retain_mut(|asked| match asked.poll() {
            Poll::Ready(answer) => {
                assert_eq!(answer.unwrap().status(), 429);
                false
            }
            Poll::Pending => true,
        });
        assert_eq!((asked.len(), counts.waiting()), (most, most));
        clock.advance(millis(100 * most as u64));
        for mut waiter in asked {
            assert_eq!(assert_ready!(waiter.poll()).unwrap().status(), 200);
        }
        assert_eq!((counts.waiting(), counts.counts().waited), (0, most as u64));
    }
}

#[tokio::test]
async fn who_waits_in_a_leaky_bucket_counts_without_a_queue_of_the_layers_own() {
    let (store, clock) = store();
    let layer =
        RateLimitLayer::new(Limit::leaky_bucket(2, secs(1)).queue(2).by(CLIENT)).store(store);
    let counts = layer.clone();
    let app = app(layer);
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    let mut first = task::spawn(app.clone().oneshot(get("/", "alice")));
    let mut second = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_eq!(send(&app, "/", "alice").await.status(), 429, "its queue is as long as it was made");
    assert_eq!(counts.waiting(), 2);
    clock.advance(millis(500));
    assert_ready!(first.poll()).unwrap();
    assert_pending!(second.poll());
    drop(second);
    assert_eq!(counts.waiting(), 0);
}

/// It fits once another request has left, so this is not "never".
#[tokio::test]
async fn who_finds_no_place_to_wait_is_not_told_that_it_never_fits() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::leaky_bucket(10, secs(1)).queue(20).by(CLIENT).cost(3))
        .store(store)
        .rejection(Rejection::queue(secs(1)).at_most(1));
    let app = app(layer);
    let mut first = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(first.poll());
    let crowded = send(&app, "/", "bob").await;
    assert_eq!(
        (crowded.status().as_u16(), super::common::header(&crowded, "retry-after")),
        (429, "1")
    );
    drop(first);
    let mut next = task::spawn(app.clone().oneshot(get("/", "bob")));
    assert_pending!(next.poll());
}

/// A service that panics when it is called without having been polled ready.
#[derive(Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<String>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
        std::future::ready(Ok(Response::new(String::new())))
    }
}

#[tokio::test]
async fn the_service_that_was_polled_ready_is_the_one_that_is_called() {
    let (store, clock) = store();
    let mut service = RateLimitLayer::new(Limit::per_second(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(60)))
        .layer(Strict::default());
    service.ready().await.unwrap().call(get("/", "alice")).await.unwrap();
    for _ in 0..3 {
        let mut waiting = task::spawn(service.ready().await.unwrap().call(get("/", "alice")));
        assert_pending!(waiting.poll());
        clock.advance(secs(1));
        assert_ready!(waiting.poll()).unwrap();
    }
}

#[tokio::test]
async fn concurrency_limit_and_buffer_inside_work() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_second(1_000).by(CLIENT)).store(store);
    let inside =
        tower::ServiceBuilder::new().buffer(8).concurrency_limit(2).service(Strict::default());
    let service = layer.layer(inside);
    let requests = (0..50).map(|_| tokio::spawn(service.clone().oneshot(get("/", "alice"))));
    for request in requests.collect::<Vec<_>>() {
        assert_eq!(request.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn what_is_held_is_given_back_on_response_error_and_drop() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::concurrent(1).by(CLIENT)).store(store);
    let handler = tower::service_fn(|request: Request<String>| async move {
        match request.uri().path() {
            "/hang" => std::future::pending().await,
            "/fail" => Err("failed"),
            _ => Ok(Response::new(String::new())),
        }
    });
    let app = tower::ServiceBuilder::new().layer(layer).service(handler);
    let send = |path| app.clone().oneshot(get(path, "alice"));

    assert_eq!(send("/").await.unwrap().status(), 200);
    assert_eq!(send("/fail").await.unwrap_err(), "failed");
    let mut held = task::spawn(send("/hang"));
    assert_pending!(held.poll());
    let refused = send("/").await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(super::common::header(&refused, "retry-after"), "1");
    drop(held);
    assert_eq!(send("/").await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_store_that_never_answers_costs_its_deadline_and_nothing_more() {
    let clock = ManualClock::new();
    let layer = RateLimitLayer::new(Limit::per_hour(1).by(CLIENT))
        .store(TestStore::new(Memory::builder().clock(&clock).build(), Manner::Never))
        .deadline(millis(50));
    let counts = layer.clone();
    for (on_error, status) in [(OnStoreError::Admit, 200), (OnStoreError::Refuse, 503)] {
        let app = app(layer.clone().on_store_error(on_error));
        let mut asked = task::spawn(app.oneshot(get("/", "alice")));
        assert_pending!(asked.poll());
        clock.advance(millis(49));
        assert_pending!(asked.poll());
        clock.advance(millis(1));
        assert_eq!(assert_ready!(asked.poll()).unwrap().status(), status);
    }
    assert_eq!(counts.counts().store_failures, 2);
}
