use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate_core::{Answer, ManualClock, Store};
use tollgate_redis::{BreakerState, FailureKind, Redis};

use crate::fake::{Act, Fake, is_charge};
use crate::{DEADLINE, builder, charge, kind, later, take};

const FAILURES: u32 = 3;
const FIRST: Duration = Duration::from_secs(1);

/// A server that is full as long as the flag says so.
fn full() -> (Fake, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(true));
    let full = Arc::clone(&flag);
    let fake = Fake::new(move |name, _| {
        let says = name == "EVALSHA" && full.load(Ordering::SeqCst);
        says.then(|| Act::Say(b"-OOM command not allowed.\r\n".to_vec()))
    });
    (fake, flag)
}

fn with_breaker(fake: &Fake, clock: &ManualClock) -> Redis {
    builder(fake, clock).breaker(FAILURES, FIRST, FIRST * 4).build().expect("a good URL")
}

async fn opened(fake: &Fake, clock: &ManualClock) -> Redis {
    let store = with_breaker(fake, clock);
    for _ in 0..FAILURES {
        assert_eq!(kind(take(&store).await), FailureKind::OutOfMemory);
    }
    store
}

fn answers_at_once(store: &Redis) -> FailureKind {
    match store.take(&charge()) {
        Answer::Now(outcome) => kind(outcome),
        Answer::Later(_) => panic!("it asks"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_keeps_failing_is_not_asked() {
    let ((fake, _), clock) = (full(), ManualClock::new());
    let store = opened(&fake, &clock).await;
    let asked = fake.seen("EVALSHA");
    for _ in 0..100 {
        assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen);
    }
    assert_eq!(fake.seen("EVALSHA"), asked);
    let counts = store.counts();
    assert_eq!((counts.breaker, counts.breaker_openings), (BreakerState::Open, 1));
    assert_eq!(counts.failures_of(FailureKind::BreakerOpen), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_finds_out_and_closes_it() {
    let ((fake, is_full), clock) = (full(), ManualClock::new());
    let store = opened(&fake, &clock).await;
    is_full.store(false, Ordering::SeqCst);
    clock.advance(FIRST);
    let probe = later(&store);
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen, "one at a time");
    assert!(probe.await.expect("a decision").is_admitted());
    assert_eq!(store.counts().breaker, BreakerState::Closed);
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_finds_out_in_vain_keeps_it_open_for_longer() {
    let ((fake, _), clock) = (full(), ManualClock::new());
    let store = opened(&fake, &clock).await;
    clock.advance(FIRST);
    assert_eq!(kind(take(&store).await), FailureKind::OutOfMemory);
    clock.advance(FIRST - Duration::from_micros(1));
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen);
    clock.advance(FIRST);
    assert_eq!(kind(take(&store).await), FailureKind::OutOfMemory);
    assert_eq!(store.counts().breaker_openings, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_dropped_leaves_it_to_the_next() {
    let ((fake, is_full), clock) = (full(), ManualClock::new());
    let store = opened(&fake, &clock).await;
    is_full.store(false, Ordering::SeqCst);
    clock.advance(FIRST);
    drop(later(&store));
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_somebody_else_s_opens_nothing() {
    let fake = Fake::new(|name, _| {
        (name == "EVALSHA").then(|| Act::Say(b"-WRONGTYPE not a string\r\n".to_vec()))
    });
    let store = with_breaker(&fake, &ManualClock::new());
    for _ in 0..FAILURES * 3 {
        assert_eq!(kind(take(&store).await), FailureKind::WrongType);
    }
    assert_eq!(store.counts().breaker, BreakerState::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_gets_a_new_connection_and_is_asked_again_on_it() {
    let hangs = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&hangs);
    let fake = Fake::new(move |name, command| {
        let charges = name == "EVALSHA" && is_charge(command);
        (charges && flag.load(Ordering::SeqCst)).then_some(Act::Nothing)
    });
    let clock = ManualClock::new();
    let store = with_breaker(&fake, &clock);
    for asked in 1..=FAILURES {
        let asks = tokio::spawn(later(&store));
        fake.wait_for("EVALSHA", asked as usize);
        clock.advance(DEADLINE);
        assert_eq!(kind(asks.await.expect("no panic")), FailureKind::TooSlow);
    }
    hangs.store(false, Ordering::SeqCst);
    // The new connection lets the next one find out, without waiting for the pause to end.
    crate::until(&store, |counts| counts.connections == 2).await;
    for _ in 0..1_000 {
        if take(&store).await.is_ok() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it is not asked again: {:?}", store.counts());
}
