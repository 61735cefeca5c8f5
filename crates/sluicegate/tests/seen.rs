//! What operators see: events, spans, and the keys that are refused most.

mod common;

use std::future::{Ready, ready};
use std::io;
use std::sync::{Arc, Mutex};

use common::{App, app, get, millis, secs, send, store};
use sluicegate::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate::key::KeySecret;
use sluicegate::observe::{ShowKeys, Watch};
use sluicegate::store::{Store, StoreError};
use sluicegate::{Header, Limit, Limiter, Memory, RateLimitLayer, Rejection};
use tokio_test::{assert_pending, assert_ready, task};
use tower::ServiceExt;
use tracing_subscriber::fmt::format::FmtSpan;

const CLIENT: Header = Header("x-client");

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Logs what this thread does from here on.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
            .with_writer(move || writer.clone())
            .without_time()
            .with_ansi(false)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines with `part` in them.
    fn lines(&self, part: &str) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

async fn statuses(app: &App, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, "/", "alice").await.status().as_u16());
    }
    statuses
}

#[tokio::test]
async fn events_say_who_only_where_that_is_asked_for() {
    let secret = ShowKeys::Digest(KeySecret::new(b"secret"));
    for (show, expected) in [
        (ShowKeys::Hidden, None),
        (ShowKeys::Shown, Some("who=\"header:x-client=alice\"")),
        (secret, Some("who=\"$")),
    ] {
        let (log, _guard) = Log::begin();
        let (store, _clock) = store();
        let layer = RateLimitLayer::new(Limit::per_hour(1).named("strict").by(CLIENT));
        let app = app(layer.store(store).show_keys(show.clone()));
        assert_eq!(statuses(&app, 2).await, [200, 429]);
        let refused = log.lines("refused");
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].contains("limits=strict"), "{refused:?}");
        assert_eq!(refused[0].contains("alice"), matches!(show, ShowKeys::Shown), "{refused:?}");
        match expected {
            Some(who) => assert!(refused[0].contains(who), "{refused:?}"),
            None => assert!(!refused[0].contains("who"), "{refused:?}"),
        }
    }
}

#[tokio::test]
async fn a_soft_limit_that_is_exceeded_is_told_once_a_second() {
    let (log, _guard) = Log::begin();
    let (store, clock) = store();
    let limit = Limit::fixed_window(100, secs(3600)).soft(2).named("api");
    let app = app(RateLimitLayer::new(limit.by(CLIENT)).store(store).show_keys(ShowKeys::Shown));
    statuses(&app, 2).await;
    assert_eq!(log.lines("soft limit"), Vec::<String>::new());
    statuses(&app, 20).await;
    let told = log.lines("soft limit");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("WARN") && told[0].contains("limit=api"), "{told:?}");
    assert!(told[0].contains("header:x-client=alice"), "{told:?}");
    clock.advance(secs(1));
    statuses(&app, 20).await;
    assert_eq!(log.lines("soft limit").len(), 2);
}

#[tokio::test]
async fn a_ban_is_told_once_a_second_and_not_as_a_refusal_besides() {
    let (log, _guard) = Log::begin();
    let (store, clock) = store();
    let limit = Limit::fixed_window(1, secs(60)).ban(secs(3600)).named("login");
    let app = app(RateLimitLayer::new(limit.by(CLIENT)).store(store));
    assert_eq!(statuses(&app, 5).await, [200, 429, 429, 429, 429]);
    let told = log.lines("WARN");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("banned: refused") && told[0].contains("limits=login"), "{told:?}");
    assert_eq!(log.lines("DEBUG").len(), 3);
    clock.advance(secs(1));
    statuses(&app, 2).await;
    assert_eq!(log.lines("WARN").len(), 2);
}

#[tokio::test]
async fn trials_are_told_once_a_second_with_a_count() {
    let strict = Limit::fixed_window(1, secs(3600)).named("strict");
    let layer = RateLimitLayer::new(strict.by(CLIENT)).rejection(Rejection::shadow());
    told_once_a_second(layer).await;
    told_once_a_second(RateLimitLayer::new(strict.shadow().by(CLIENT))).await;
}

async fn told_once_a_second<R>(layer: RateLimitLayer<R>)
where
    R: for<'a> sluicegate::rule::Rule<sluicegate::adapter::HttpView<'a, String>>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let (log, _guard) = Log::begin();
    let (store, clock) = store();
    let app = app(layer.store(store));
    assert_eq!(statuses(&app, 20).await, [200; 20]);
    let told = log.lines("INFO");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("would have been refused"), "{told:?}");
    assert!(told[0].contains("limits=strict") && told[0].contains("so_far=1"), "{told:?}");
    clock.advance(secs(1));
    statuses(&app, 5).await;
    let told = log.lines("INFO");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("so_far=20"), "{told:?}");
}

#[tokio::test]
async fn what_is_decided_at_once_has_no_span() {
    let (log, _guard) = Log::begin();
    let (store, _clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_hour(1).by(CLIENT)).store(store));
    assert_eq!(statuses(&app, 2).await, [200, 429]);
    assert_eq!(log.lines("rate_limit"), Vec::<String>::new());
}

#[tokio::test]
async fn a_wait_has_a_span_that_ends_before_the_service_is_called() {
    let (log, _guard) = Log::begin();
    let (store, clock) = store();
    let layer = RateLimitLayer::new(Limit::per_second(10).burst(1).by(CLIENT))
        .store(store)
        .rejection(Rejection::queue(millis(250)));
    let app = app(layer);
    assert_eq!(statuses(&app, 1).await, [200]);
    let mut waiting = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(waiting.poll());
    assert_eq!(log.lines("rate_limit: ").len(), 1);
    assert_eq!(log.lines("close").len(), 0);
    clock.advance(millis(100));
    assert_ready!(waiting.poll()).unwrap();
    assert_eq!(log.lines("close").len(), 1);
}

/// A memory that is somewhere else.
#[derive(Clone)]
struct Remote(Memory);

impl Store for Remote {
    type Future = Ready<Result<Outcome, StoreError>>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Later(ready(self.0.take(charge).now()))
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.0.peek(charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        self.0.reset(charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.0.settle(debit, receipt, spent);
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.0.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &sluicegate::limit::LimitStatus) {
        self.0.follow_status(debit, status);
    }

    fn clock(&self) -> sluicegate::clock::Clock {
        self.0.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), sluicegate::limit::LimitError> {
        self.0.check(limit)
    }
}

#[tokio::test]
async fn a_remote_decision_has_a_span_and_its_refusal_is_told_within() {
    let (log, _guard) = Log::begin();
    let (memory, _clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_hour(1).by(CLIENT)).store(Remote(memory)));
    assert_eq!(statuses(&app, 2).await, [200, 429]);
    assert_eq!(log.lines("new").len(), 2);
    let refused = log.lines("refused");
    assert!(refused[0].contains("rate_limit:"), "{refused:?}");
}

#[tokio::test]
async fn a_watch_sees_what_a_limit_on_trial_would_refuse() {
    let watch = Watch::new(8);
    let (store, _clock) = store();
    let limits = [Limit::per_hour(1).named("trial").shadow(), Limit::per_hour(9).named("wide")];
    let app = app(RateLimitLayer::new(sluicegate::limit::Limits::from(limits).by(CLIENT))
        .store(store)
        .watch(&watch));
    assert_eq!(statuses(&app, 3).await, [200, 200, 200]);
    let shown = watch.snapshot();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!((shown[0].policy.as_str(), shown[0].refusals), ("trial", 2));
}

#[tokio::test]
async fn a_watch_is_told_of_whatever_a_limit_refuses() {
    for (rejection, status) in
        [(Rejection::block(), 429), (Rejection::degrade(), 200), (Rejection::shadow(), 200)]
    {
        let watch = Watch::new(8);
        let (store, _clock) = store();
        let layer = RateLimitLayer::new(Limit::per_hour(1).named("strict").by(CLIENT));
        let app = app(layer.store(store).rejection(rejection).watch(&watch));
        assert_eq!(statuses(&app, 3).await, [200, status, status]);
        send(&app, "/", "bob").await;
        let shown = watch.snapshot().remove(0);
        assert_eq!((shown.policy.as_str(), shown.refusals, shown.keys.len()), ("strict", 2, 1));
        assert_eq!(shown.keys[0].who, "header:x-client=alice");
    }
}

#[tokio::test]
async fn a_limiter_tells_whom_it_refuses_but_for_what_is_only_spent() {
    let watch = Watch::new(8);
    let limiter = Limiter::new(Limit::per_hour(1).named("jobs")).watch(&watch);
    assert!(limiter.take("alice").now().unwrap().is_admitted());
    assert!(!limiter.peek("alice").now().unwrap().is_admitted());
    assert!(!limiter.spend("alice", 1).unwrap().is_admitted());
    assert!(watch.snapshot().is_empty());
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    assert!(limiter.acquire("alice", secs(1)).await.is_err());
    let (memory, _clock) = store();
    let remote = limiter.store(Remote(memory));
    assert!(remote.take("bob").await.unwrap().is_admitted());
    assert!(!remote.take("bob").await.unwrap().is_admitted());
    let keys = watch.snapshot().remove(0).keys;
    let keys: Vec<_> = keys.iter().map(|key| (key.who.as_str(), key.at_least)).collect();
    assert_eq!(keys, [("alice", 2), ("bob", 1)]);
}
