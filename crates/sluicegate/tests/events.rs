//! Events and spans. They stay apart from the other tests: where a thread without a subscriber is the first that passes
//! an event, `tracing` may switch it off for the threads that have one.

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "all/common.rs"]
mod common;

use std::io;
use std::sync::{Arc, Mutex};

use common::{CLIENT, app, get, millis, secs, statuses, store};
use sluicegate::key::KeySecret;
use sluicegate::observe::ShowKeys;
use sluicegate::{Limit, RateLimitLayer, Rejection};
use sluicegate_tests::stores::{Manner, TestStore};
use tokio_test::{assert_pending, assert_ready, task};
use tower::ServiceExt;
use tracing_subscriber::fmt::format::FmtSpan;

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
        assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
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
    statuses(&app, "/", 2).await;
    assert_eq!(log.lines("soft limit"), Vec::<String>::new());
    statuses(&app, "/", 20).await;
    let told = log.lines("soft limit");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("WARN") && told[0].contains("limit=api"), "{told:?}");
    assert!(told[0].contains("header:x-client=alice"), "{told:?}");
    clock.advance(secs(1));
    statuses(&app, "/", 20).await;
    assert_eq!(log.lines("soft limit").len(), 2);
}

#[tokio::test]
async fn a_ban_is_told_once_a_second_and_not_as_a_refusal_besides() {
    let (log, _guard) = Log::begin();
    let (store, clock) = store();
    let limit = Limit::fixed_window(1, secs(60)).ban(secs(3600)).named("login");
    let app = app(RateLimitLayer::new(limit.by(CLIENT)).store(store));
    assert_eq!(statuses(&app, "/", 5).await, [200, 429, 429, 429, 429]);
    let told = log.lines("WARN");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("banned: refused") && told[0].contains("limits=login"), "{told:?}");
    assert_eq!(log.lines("DEBUG").len(), 3);
    clock.advance(secs(1));
    statuses(&app, "/", 2).await;
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
    assert_eq!(statuses(&app, "/", 20).await, [200; 20]);
    let told = log.lines("INFO");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("would have been refused"), "{told:?}");
    assert!(told[0].contains("limits=strict") && told[0].contains("so_far=1"), "{told:?}");
    clock.advance(secs(1));
    statuses(&app, "/", 5).await;
    let told = log.lines("INFO");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("so_far=20"), "{told:?}");
}

#[tokio::test]
async fn what_is_decided_at_once_has_no_span() {
    let (log, _guard) = Log::begin();
    let (store, _clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_hour(1).by(CLIENT)).store(store));
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
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
    assert_eq!(statuses(&app, "/", 1).await, [200]);
    let mut waiting = task::spawn(app.clone().oneshot(get("/", "alice")));
    assert_pending!(waiting.poll());
    assert_eq!(log.lines("rate_limit: ").len(), 1);
    assert_eq!(log.lines("close").len(), 0);
    clock.advance(millis(100));
    assert_ready!(waiting.poll()).unwrap();
    assert_eq!(log.lines("close").len(), 1);
}

#[tokio::test]
async fn a_remote_decision_has_a_span_and_its_refusal_is_told_within() {
    let (log, _guard) = Log::begin();
    let (memory, _clock) = store();
    let app = app(RateLimitLayer::new(Limit::per_hour(1).by(CLIENT))
        .store(TestStore::new(memory, Manner::Later)));
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    assert_eq!(log.lines("new").len(), 2);
    let refused = log.lines("refused");
    assert!(refused[0].contains("rate_limit:"), "{refused:?}");
}
