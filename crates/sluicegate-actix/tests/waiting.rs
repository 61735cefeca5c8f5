//! Requests that wait: in order, bounded, and never in vain.

mod common;

use std::time::Duration;

use actix_web::dev::Service;
use common::{app, get, secs, send, statuses, store};
use sluicegate_actix::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_actix::clock::Clock;
use sluicegate_actix::store::{Fallback, OnStoreError, Store, StoreError};
use sluicegate_actix::{Header, Limit, ManualClock, Memory, RateLimit, Rejection};
use tokio_test::{assert_pending, assert_ready, task};

const CLIENT: Header = Header("x-client");

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[actix_web::test]
async fn requests_wait_for_their_turn_in_order_of_arrival() {
    let (store, clock) = store();
    let limit = RateLimit::new(Limit::per_second(10).burst(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(millis(250)));
    let counts = limit.clone();
    let app = app(limit).await;
    assert_eq!(send(&app, "/", "alice").await.status(), 200);

    let mut first = task::spawn(app.call(get("/", "alice")));
    let mut second = task::spawn(app.call(get("/", "alice")));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_eq!(counts.waiting(), 2);
    assert_eq!(statuses(&app, "/", 1).await, [429], "300 ms is longer than it may wait");

    clock.advance(millis(100));
    assert!(first.is_woken());
    assert_eq!(assert_ready!(first.poll()).unwrap().status(), 200);
    assert_pending!(second.poll());
    clock.advance(millis(100));
    assert_eq!(assert_ready!(second.poll()).unwrap().status(), 200);
    assert_eq!(counts.waiting(), 0);
    assert_eq!(counts.counts().waited, 2);
}

/// Two bounds on one queue: the bucket's, for each key, and the middleware's, for all of them.
#[actix_web::test]
async fn who_waits_in_a_leaky_bucket_waits_in_the_middlewares_queue() {
    for (rejection, most) in [
        (Rejection::queue(secs(1)).at_most(5), 5),
        (Rejection::queue(millis(300)), 3),
        (Rejection::block(), 20),
    ] {
        let (store, clock) = store();
        let limit = RateLimit::new(Limit::leaky_bucket(10, secs(1)).queue(20).by(CLIENT))
            .store(store)
            .rejection(rejection);
        let counts = limit.clone();
        let app = app(limit).await;
        assert_eq!(send(&app, "/", "alice").await.status(), 200);
        let mut asked: Vec<_> = (0..50).map(|_| task::spawn(app.call(get("/", "alice")))).collect();
        asked.retain_mut(|asked| asked.poll().is_pending());
        assert_eq!((asked.len(), counts.waiting()), (most, most));
        clock.advance(secs(2));
        for mut waiter in asked {
            assert_eq!(assert_ready!(waiter.poll()).unwrap().status(), 200);
        }
        assert_eq!(counts.waiting(), 0);
    }
}

#[actix_web::test]
async fn the_queue_is_bounded_in_length_and_then_redirects() {
    let (store, _clock) = store();
    let limit = RateLimit::new(Limit::per_second(10).burst(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(60)).at_most(3).then(Rejection::redirect("/busy")));
    let app = app(limit).await;
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    let mut waiting: Vec<_> = (0..3).map(|_| task::spawn(app.call(get("/", "alice")))).collect();
    for waiter in &mut waiting {
        assert_pending!(waiter.poll());
    }
    assert_eq!(statuses(&app, "/", 1).await, [307]);
    waiting.pop();
    let mut next = task::spawn(app.call(get("/", "alice")));
    assert_pending!(next.poll());
}

#[actix_web::test]
async fn workers_share_the_bound_on_how_many_wait() {
    let (store, _clock) = store();
    // Does what the closure given to `HttpServer::new` does for each worker.
    let worker = || {
        app(RateLimit::new(Limit::per_second(10).burst(1).by(CLIENT))
            .store(store.clone())
            .rejection(Rejection::queue(secs(60)).at_most(2)))
    };
    let (a, b) = (worker().await, worker().await);
    assert_eq!(send(&a, "/", "alice").await.status(), 200);
    let mut first = task::spawn(a.call(get("/", "alice")));
    assert_pending!(first.poll());
    let mut second = task::spawn(b.call(get("/", "alice")));
    assert_pending!(second.poll());
    let mut third = task::spawn(a.call(get("/", "alice")));
    assert_eq!(assert_ready!(third.poll()).unwrap().status(), 429);
}

#[actix_web::test]
async fn a_request_whose_client_has_gone_gives_its_place_back() {
    let (store, clock) = store();
    let limit = RateLimit::new(Limit::sliding_log(1, secs(10)).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(secs(25)));
    let app = app(limit).await;
    assert_eq!(send(&app, "/", "alice").await.status(), 200);
    let mut gone = task::spawn(app.call(get("/", "alice")));
    assert_pending!(gone.poll());
    drop(gone);
    let mut next = task::spawn(app.call(get("/", "alice")));
    assert_pending!(next.poll());
    clock.advance(secs(10));
    assert_eq!(assert_ready!(next.poll()).unwrap().status(), 200);
}

/// A store somewhere else that answers when it likes: never, or at the second look.
#[derive(Clone)]
struct Remote {
    memory: Memory,
    silent: bool,
}

/// The answer of the memory, returned at the second poll.
struct Late {
    decision: Option<Result<Outcome, StoreError>>,
    asked: bool,
}

impl Future for Late {
    type Output = Result<Outcome, StoreError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        match self.asked {
            true => self.decision.take().map_or(std::task::Poll::Pending, std::task::Poll::Ready),
            false => {
                self.asked = true;
                cx.waker().wake_by_ref();
                std::task::Poll::Pending
            }
        }
    }
}

impl Remote {
    fn late(&self, answer: Answer<<Memory as Store>::Future>) -> Answer<Late> {
        let decision = (!self.silent).then(|| answer.now());
        Answer::Later(Late { decision, asked: false })
    }
}

impl Store for Remote {
    type Future = Late;

    fn take(&self, charge: &Charge) -> Answer<Late> {
        self.late(self.memory.take(charge))
    }
    fn peek(&self, charge: &Charge) -> Answer<Late> {
        self.late(self.memory.peek(charge))
    }
    fn reset(&self, charge: &Charge) -> Answer<Late> {
        self.late(self.memory.reset(charge))
    }
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.memory.settle(debit, receipt, spent);
    }
    fn clock(&self) -> Clock {
        self.memory.clock()
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.memory.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &sluicegate_core::limit::LimitStatus) {
        self.memory.follow_status(debit, status);
    }

    fn check(
        &self,
        limit: &sluicegate_core::Limit,
    ) -> Result<(), sluicegate_core::limit::LimitError> {
        self.memory.check(limit)
    }
}

#[actix_web::test]
async fn a_store_that_answers_later_decides_all_the_same() {
    let (memory, clock) = store();
    let remote = Remote { memory, silent: false };
    let limit = RateLimit::new(Limit::per_second(1).burst(2).by(CLIENT)).store(remote);
    let queueing = app(limit.clone().rejection(Rejection::queue(secs(1)))).await;
    let app = app(limit).await;
    assert_eq!(statuses(&app, "/", 3).await, [200, 200, 429]);
    let mut waiting = task::spawn(queueing.call(get("/", "alice")));
    assert_pending!(waiting.poll());
    assert_pending!(waiting.poll());
    clock.advance(secs(1));
    assert_eq!(assert_ready!(waiting.poll()).unwrap().status(), 200);
}

#[actix_web::test]
async fn a_store_that_never_answers_costs_its_deadline_and_nothing_more() {
    let clock = ManualClock::new();
    let memory = Memory::builder().capacity(1).clock(&clock).build();
    let limit = RateLimit::new(Limit::per_hour(1).by(CLIENT))
        .store(Remote { memory, silent: true })
        .deadline(millis(50));
    let counts = limit.clone();
    for (on_error, status) in [(OnStoreError::Admit, 200), (OnStoreError::Refuse, 503)] {
        let app = app(limit.clone().on_store_error(on_error)).await;
        let mut asked = task::spawn(app.call(get("/", "alice")));
        assert_pending!(asked.poll());
        clock.advance(millis(49));
        assert_pending!(asked.poll());
        clock.advance(millis(1));
        assert_eq!(assert_ready!(asked.poll()).unwrap().status(), status);
    }
    assert_eq!(counts.counts().store_failures, 2);
}

#[actix_web::test]
async fn a_store_that_fails_is_replaced_by_its_fallback() {
    let (memory, _clock) = store();
    let store = Fallback(Memory::builder().capacity(1).build(), memory);
    let limit = Limit::per_hour(2).when_full(sluicegate_actix::limit::WhenFull::Admit);
    let app = app(RateLimit::new(limit.by(CLIENT)).store(store)).await;
    for client in 0..50 {
        let client = client.to_string();
        for status in [200, 200, 429] {
            assert_eq!(send(&app, "/", &client).await.status(), status, "client {client}");
        }
    }
}
