use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::{FailureKind, Redis, RedisBuilder};
use tokio::task::JoinHandle;

use crate::fake::{Act, Fake, admitted, admitted_by_three, evaluates, is_charge, refused};
use crate::{
    DEADLINE, Outcome, StoreError, TICK, builder, decide, kind, later, store, take, until,
};

/// How long late answers are awaited.
const GRACE: Duration = DEADLINE.saturating_mul(10);

/// A store, and a server that holds back its answers to charges.
struct Slow {
    fake: Fake,
    clock: ManualClock,
    store: Redis,
}

impl Slow {
    fn answering(answer: Vec<u8>) -> Self {
        Self::with(answer, |builder| builder)
    }

    fn with(answer: Vec<u8>, set_up: impl FnOnce(RedisBuilder) -> RedisBuilder) -> Self {
        let fake = Fake::new(move |name, command| {
            let charges = name == "EVALSHA" && is_charge(command);
            charges.then(|| Act::Hold(answer.clone()))
        });
        let clock = ManualClock::new();
        let store = set_up(builder(&fake, &clock)).build().expect("a good URL");
        Self { fake, clock, store }
    }

    /// A decision whose call has reached the server.
    fn call(&self) -> JoinHandle<Result<Outcome, StoreError>> {
        let calls = self.fake.seen("EVALSHA");
        let task = tokio::spawn(later(&self.store));
        self.fake.wait_for("EVALSHA", calls + 1);
        task
    }

    /// A decision that misses its deadline.
    async fn miss(&self) {
        let task = self.call();
        self.clock.advance(DEADLINE);
        assert_eq!(kind(task.await.expect("no panic")), FailureKind::TooSlow);
    }

    /// A decision whose future is dropped while the server decides.
    async fn drop_one(&self) {
        let task = self.call();
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_too_slow_at_the_deadline_and_not_before() {
    let slow = Slow::answering(admitted());
    let mut asked = slow.call();
    slow.clock.advance(DEADLINE - TICK);
    let early = tokio::time::timeout(DEADLINE, &mut asked).await;
    assert!(early.is_err(), "it still waits");
    slow.clock.advance(TICK);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    assert_eq!(slow.store.counts().failures_of(FailureKind::TooSlow), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_slow_is_measured_too() {
    let slow = Slow::answering(admitted());
    slow.miss().await;
    let Slow { store, .. } = slow;
    let measured: u64 = store.counts().latency.buckets().map(|(_, count)| count).sum();
    assert_eq!(measured, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_comes_too_late_is_given_back() {
    let slow = Slow::answering(admitted());
    slow.miss().await;
    let Slow { fake, store, .. } = slow;
    assert_eq!(fake.evaluated(), 1);
    fake.release();
    store.flush().await;
    assert_eq!(fake.evaluated(), 2, "the second gives back");
    assert_eq!(store.counts().given_back, 1);
}

/// The charge of one limit cannot be given back: its script fails. Those of the other two can.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_charge_to_several_limits_is_given_back_to_each_though_one_fails() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let rows = Arc::clone(&asked);
    let fake = Fake::new(move |name, command| {
        if !evaluates(name) {
            return None;
        }
        let (row, mut rows) = (command[3].clone(), rows.lock().unwrap());
        let is_first = rows.is_empty();
        rows.push(row);
        match rows.as_slice() {
            _ if is_first => Some(Act::Hold(admitted_by_three())),
            [charged, .., settled] if charged == settled => {
                Some(Act::Say(b"-ERR the script failed\r\n".to_vec()))
            }
            _ => None,
        }
    });
    let clock = ManualClock::new();
    let store = store(&fake, &clock);
    let mut charge = crate::charge();
    for key in ["bob", "carol"] {
        charge.add(Limit::per_minute(100), KeyBuf::of(key), 1).expect("three limits");
    }
    let task = tokio::spawn({
        let store = store.clone();
        async move { decide(&store, &charge).await }
    });
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(task.await.expect("no panic")), FailureKind::TooSlow);
    fake.release();
    store.flush().await;
    let mut settled = asked.lock().unwrap()[1..].to_vec();
    settled.dedup();
    assert_eq!(settled.len(), 3);
    let counts = store.counts();
    assert_eq!((counts.given_back, counts.settlements_dropped), (0, 1), "not all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_comes_too_late_needs_no_giving_back() {
    let slow = Slow::answering(refused());
    slow.miss().await;
    let Slow { fake, store, .. } = slow;
    fake.release();
    store.flush().await;
    assert_eq!(fake.evaluated(), 1);
    assert_eq!(store.counts().given_back, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_that_is_dropped_while_it_asks_gives_back() {
    let slow = Slow::answering(admitted());
    slow.drop_one().await;
    let Slow { fake, store, .. } = slow;
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
    assert_eq!(fake.evaluated(), 1);
    assert_eq!(store.counts().unanswered, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_not_awaited_for_ever() {
    let slow = Slow::with(admitted(), |builder| builder.background(4, GRACE));
    slow.miss().await;
    let Slow { clock, store, .. } = &slow;
    let mut flush = pin!(store.flush());
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(flush.as_mut().poll(&mut cx), Poll::Pending);
    // The task may not have begun to wait when the clock is moved.
    until(store, |counts| {
        clock.advance(GRACE);
        counts.unanswered == 1
    })
    .await;
    flush.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_could_not_be_given_back_is_not_made() {
    let slow = Slow::with(admitted(), |builder| {
        builder.background(2, GRACE).breaker(0, DEADLINE, DEADLINE)
    });
    slow.drop_one().await;
    slow.drop_one().await;
    let Slow { fake, store, .. } = &slow;
    for _ in 0..100 {
        assert_eq!(kind(take(store).await), FailureKind::Full);
    }
    assert_eq!(fake.evaluated(), 2);
    assert_eq!(store.counts().failures_of(FailureKind::Full), 100);
    fake.release();
    store.flush().await;
    assert_eq!((store.counts().given_back, store.counts().unanswered), (2, 0));
    let _under_way = slow.call();
}

#[tokio::test(flavor = "multi_thread")]
async fn peeks_under_way_are_bounded_too() {
    let fake = Fake::new(|name, _| (name == "EVALSHA").then_some(Act::Nothing));
    let clock = ManualClock::new();
    let store = builder(&fake, &clock)
        .background(3, GRACE)
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
        clock.advance(GRACE);
        store.counts().connections == 2
    })
    .await;
    store.flush().await;
}
