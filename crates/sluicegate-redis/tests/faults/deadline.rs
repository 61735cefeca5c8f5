use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sluicegate_core::ManualClock;
use sluicegate_core::store::Store;
use sluicegate_redis::FailureKind;

use crate::fake::{Act, Fake, admitted, is_charge, refused};
use crate::{DEADLINE, TICK, builder, kind, later, store, take, until};

/// A server that holds back what it answers to charges.
fn slow(words: Vec<u8>) -> Fake {
    Fake::new(move |name, command| {
        let charges = name == "EVALSHA" && is_charge(command);
        charges.then(|| Act::Hold(words.clone()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_too_slow_at_the_deadline_and_not_before() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let store = store(&fake, &clock);
    let mut asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE - TICK);
    let early = tokio::time::timeout(DEADLINE, &mut asked).await;
    assert!(early.is_err(), "it still waits");
    clock.advance(TICK);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    assert_eq!(store.counts().failures_of(FailureKind::TooSlow), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_slow_is_measured_too() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let store = store(&fake, &clock);
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    let measured: u64 = store.counts().latency.buckets().map(|(_, count)| count).sum();
    assert_eq!(measured, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_charged_too_late_is_given_back() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let store = store(&fake, &clock);
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    assert_eq!(fake.seen("EVALSHA"), 1);
    fake.release();
    store.flush().await;
    assert_eq!(fake.seen("EVALSHA"), 2, "the second gives back");
    assert_eq!(store.counts().given_back, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_too_late_needs_no_giving_back() {
    let (fake, clock) = (slow(refused()), ManualClock::new());
    let store = store(&fake, &clock);
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    fake.release();
    store.flush().await;
    assert_eq!(fake.seen("EVALSHA"), 1);
    assert_eq!(store.counts().given_back, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_that_is_dropped_while_it_asks_gives_back() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let store = store(&fake, &clock);
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    asked.abort();
    assert!(asked.await.expect_err("aborted").is_cancelled());
    fake.release();
    store.flush().await;
    assert_eq!(store.counts().given_back, 1);
    assert_eq!(store.counts().decisions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_that_is_dropped_before_it_is_polled_asks_nothing() {
    let (fake, clock) = (Fake::well(), ManualClock::new());
    let store = store(&fake, &clock);
    take(&store).await.expect("a decision");
    drop(later(&store));
    store.flush().await;
    assert_eq!(fake.seen("EVALSHA"), 1);
    assert_eq!(store.counts().unanswered, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_late_is_not_waited_for_for_ever() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let grace = DEADLINE * 10;
    let store = builder(&fake, &clock).background(4, grace).build().expect("a good URL");
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    let mut flush = pin!(store.flush());
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(flush.as_mut().poll(&mut cx), Poll::Pending);
    // The task may not have begun to wait when the clock is turned.
    until(&store, |counts| {
        clock.advance(grace);
        counts.unanswered == 1
    })
    .await;
    flush.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_given_back_is_not_asked() {
    let (fake, clock) = (slow(admitted()), ManualClock::new());
    let store = builder(&fake, &clock)
        .background(2, DEADLINE * 10)
        .breaker(0, DEADLINE, DEADLINE)
        .build()
        .expect("a good URL");
    for asked in 1..=2 {
        let task = tokio::spawn(later(&store));
        fake.wait_for("EVALSHA", asked);
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
    }
    for _ in 0..100 {
        assert_eq!(kind(take(&store).await), FailureKind::Full);
    }
    assert_eq!(fake.seen("EVALSHA"), 2);
    assert_eq!(store.counts().failures_of(FailureKind::Full), 100);
    fake.release();
    store.flush().await;
    assert_eq!((store.counts().given_back, store.counts().unanswered), (2, 0));
    let asked = fake.seen("EVALSHA");
    let _under_way = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", asked + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_charge_nothing_take_no_more_than_there_is_room_for_either() {
    let fake = Fake::new(|name, _| (name == "EVALSHA").then_some(Act::Nothing));
    let clock = ManualClock::new();
    let store = builder(&fake, &clock)
        .background(3, DEADLINE * 10)
        .breaker(0, DEADLINE, DEADLINE)
        .build()
        .expect("a good URL");
    for asked in 1..=3 {
        let sluicegate_core::adapter::Answer::Later(peek) = store.peek(&crate::charge()) else {
            panic!("it asks")
        };
        let task = tokio::spawn(peek);
        fake.wait_for("EVALSHA", asked);
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
    }
    assert_eq!(kind(take(&store).await), FailureKind::Full);
    until(&store, |_| {
        clock.advance(DEADLINE * 10);
        store.counts().connections == 2
    })
    .await;
    store.flush().await;
}
