use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{FailureKind, Redis};

use crate::fake::{Act, Fake, admitted, bulk, evaluates, is_charge};
use crate::{DEADLINE, builder, charge, decide, kind, later, take};

const FAILURES: u32 = 3;
const FIRST: Duration = Duration::from_secs(1);

/// A server that reports that it is full while the flag is set.
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
async fn a_server_that_keeps_failing_is_not_called() {
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
async fn a_probe_that_is_dropped_leaves_it_to_the_next() {
    let ((fake, is_full), clock) = (full(), ManualClock::new());
    let store = opened(&fake, &clock).await;
    is_full.store(false, Ordering::SeqCst);
    clock.advance(FIRST);
    drop(later(&store));
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_another_program_does_not_open_it() {
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
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen);
    assert_eq!(store.counts().connections, 1, "no connection is made before the pause has ended");
    clock.advance(FIRST);
    crate::until(&store, |counts| counts.connections == 2).await;
    for _ in 0..1_000 {
        if take(&store).await.is_ok() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it is not asked again: {:?}", store.counts());
}

/// A server that answers each call after its deadline.
fn late() -> Fake {
    Fake::new(|name, command| {
        (name == "EVALSHA" && is_charge(command)).then(|| Act::Hold(admitted()))
    })
}

/// Makes a call, and gets its answer too late.
async fn too_late(fake: &Fake, clock: &ManualClock, store: &Redis) {
    let asked = fake.seen("EVALSHA");
    let asks = tokio::spawn(later(store));
    fake.wait_for("EVALSHA", asked + 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asks.await.expect("no panic")), FailureKind::TooSlow);
    let settled = store.counts().given_back;
    fake.release();
    crate::until(store, |counts| counts.given_back > settled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_slower_than_the_deadline_opens_it_once_and_costs_one_slow_decision_a_pause()
 {
    let (fake, clock) = (late(), ManualClock::new());
    let store = with_breaker(&fake, &clock);
    for _ in 0..FAILURES {
        too_late(&fake, &clock, &store).await;
    }
    const PAUSES: u32 = 10;
    for _ in 0..PAUSES {
        assert_eq!(store.counts().breaker, BreakerState::Open, "what came late says nothing");
        for _ in 0..100 {
            assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen);
        }
        let connections = store.counts().connections;
        clock.advance(FIRST * 4);
        crate::until(&store, |counts| counts.connections > connections).await;
        too_late(&fake, &clock, &store).await;
    }
    let counts = store.counts();
    assert_eq!(counts.breaker_openings, 1);
    assert_eq!(counts.failures_of(FailureKind::TooSlow), u64::from(FAILURES + PAUSES));
    assert_eq!(counts.given_back, u64::from(FAILURES + PAUSES), "and nothing is charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_is_answered_in_time_closes_it() {
    let is_late = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_late);
    let fake = Fake::new(move |name, command| {
        let holds = name == "EVALSHA" && is_charge(command) && flag.load(Ordering::SeqCst);
        holds.then(|| Act::Hold(admitted()))
    });
    let clock = ManualClock::new();
    let store = with_breaker(&fake, &clock);
    for _ in 0..FAILURES {
        too_late(&fake, &clock, &store).await;
    }
    is_late.store(false, Ordering::SeqCst);
    clock.advance(FIRST);
    crate::until(&store, |counts| counts.connections == 2).await;
    take(&store).await.expect("a decision");
    assert_eq!(store.counts().breaker, BreakerState::Closed);
}

/// A call whose caller gives up after `time`, when it has reached the server.
async fn given_up(fake: &Fake, clock: &ManualClock, store: &Redis, time: Duration) {
    let asked = fake.seen("EVALSHA");
    let asks = tokio::spawn(later(store));
    fake.wait_for("EVALSHA", asked + 1);
    clock.advance(time);
    asks.abort();
    assert!(asks.await.expect_err("aborted").is_cancelled());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_opens_it_though_every_caller_gives_up_before_the_deadline() {
    let (fake, clock) = (late(), ManualClock::new());
    let store = with_breaker(&fake, &clock);
    for _ in 0..FAILURES {
        assert_eq!(store.counts().breaker, BreakerState::Closed);
        given_up(&fake, &clock, &store, DEADLINE / 2).await;
    }
    clock.advance(DEADLINE / 2);
    crate::until(&store, |counts| counts.breaker == BreakerState::Open).await;
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen);
    fake.release();
    crate::until(&store, |counts| counts.given_back == u64::from(FAILURES)).await;
    assert_eq!(store.counts().breaker, BreakerState::Open, "what came late says nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_give_up_on_a_server_that_answers_in_time_do_not_open_it() {
    let (fake, clock) = (late(), ManualClock::new());
    let store = with_breaker(&fake, &clock);
    for given_up_before in 0..FAILURES * 3 {
        given_up(&fake, &clock, &store, DEADLINE - crate::TICK).await;
        fake.release();
        let given_back = u64::from(given_up_before) + 1;
        crate::until(&store, |counts| counts.given_back == given_back).await;
    }
    assert_eq!(store.counts().breaker_openings, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_whose_caller_gives_up_is_judged_by_its_answer() {
    let (fake, clock) = (late(), ManualClock::new());
    let store = with_breaker(&fake, &clock);
    for _ in 0..FAILURES {
        too_late(&fake, &clock, &store).await;
    }
    clock.advance(FIRST);
    crate::until(&store, |counts| counts.connections == 2).await;
    given_up(&fake, &clock, &store, Duration::ZERO).await;
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen, "one at a time");
    fake.release();
    crate::until(&store, |counts| counts.breaker == BreakerState::Closed).await;
}

/// Their answers are awaited for longer than the deadline of a decision.
#[tokio::test(flavor = "multi_thread")]
async fn settlements_without_an_answer_keep_no_call_from_a_server_that_has_come_back() {
    let is_full = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_full);
    let fake = Fake::new(move |name, command| match (evaluates(name), is_charge(command)) {
        (true, false) => Some(Act::Nothing),
        (true, true) if flag.load(Ordering::SeqCst) => {
            Some(Act::Say(b"-OOM command not allowed.\r\n".to_vec()))
        }
        _ => None,
    });
    let clock = ManualClock::new();
    let store = with_breaker(&fake, &clock);
    let outcome = take(&store).await.expect("a decision");
    is_full.store(true, Ordering::SeqCst);
    for _ in 0..FAILURES {
        assert_eq!(kind(take(&store).await), FailureKind::OutOfMemory);
    }
    is_full.store(false, Ordering::SeqCst);
    clock.advance(FIRST);
    take(&store).await.expect("the answer to the probe");
    let (charge, receipt) = (charge(), outcome.receipts().next().expect("one"));
    let evaluated = fake.evaluated();
    for _ in 0..FAILURES {
        store.settle(charge.debits().next().expect("one"), &receipt, 0);
    }
    crate::until(&store, |_| fake.evaluated() == evaluated + FAILURES as usize).await;
    assert_eq!(answers_at_once(&store), FailureKind::BreakerOpen, "as many as may open it again");
    let asked = fake.seen("EVALSHA");
    clock.advance(DEADLINE);
    for _ in 0..2_000 {
        if let Answer::Later(asks) = store.take(&charge) {
            tokio::spawn(asks);
            return fake.wait_for("EVALSHA", asked + 1);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it is not asked: {:?}", store.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_any_mix_open_it() {
    let mut asked = 0;
    let fake = Fake::new(move |name, command| {
        asked += usize::from(name == "EVALSHA" && is_charge(command));
        match (name, asked) {
            ("EVALSHA", 1) => Some(Act::Say(b"-OOM command not allowed.\r\n".to_vec())),
            ("EVALSHA", 2) => Some(Act::Close),
            ("EVALSHA", 3) => Some(Act::Nothing),
            _ => None,
        }
    });
    let clock = ManualClock::new();
    let store = with_breaker(&fake, &clock);
    assert_eq!(kind(take(&store).await), FailureKind::OutOfMemory);
    assert_eq!(kind(take(&store).await), FailureKind::Unreachable);
    assert_eq!(store.counts().breaker, BreakerState::Closed);
    let asks = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 3);
    clock.advance(DEADLINE);
    assert_eq!(kind(asks.await.expect("no panic")), FailureKind::TooSlow);
    assert_eq!(store.counts().breaker, BreakerState::Open);
}

/// A charge to two limits, which is sent in a command of its own.
fn alone(name: &str) -> Charge {
    let mut charge = Charge::of(Limit::per_minute(100), KeyBuf::of(name), 1);
    charge.add(Limit::per_hour(1_000), KeyBuf::of(name), 1).expect("two limits");
    charge
}

/// A server that answers nothing to charges of several limits, or this.
fn silent_about_several(words: &'static [u8]) -> Fake {
    Fake::new(move |name, command| {
        let is_of_several = name == "EVALSHA" && !is_charge(command);
        is_of_several.then(|| match words {
            b"" => Act::Nothing,
            words => Act::Hold(words.to_vec()),
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_under_many_calls_is_one_failure() {
    const CALLS: usize = 64;
    let (fake, clock) = (silent_about_several(b""), ManualClock::new());
    let store = with_breaker(&fake, &clock);
    for cut in 1..FAILURES as usize {
        let calls: Vec<_> = (0..CALLS)
            .map(|call| {
                let (store, charge) = (store.clone(), alone(&call.to_string()));
                tokio::spawn(async move { decide(&store, &charge).await })
            })
            .collect();
        fake.wait_for("EVALSHA", CALLS * cut);
        fake.hang_up();
        for call in calls {
            assert_eq!(kind(call.await.expect("no panic")), FailureKind::Unreachable);
        }
        let counts = store.counts();
        assert_eq!((counts.breaker, counts.breaker_openings), (BreakerState::Closed, 0));
        assert_eq!(counts.failures, (CALLS * cut) as u64);
        assert_eq!(counts.unanswered, (CALLS * cut) as u64);
        crate::until(&store, |counts| counts.connections == cut as u64 + 1).await;
    }
    take(&store).await.expect("a decision");
    assert_eq!(store.counts().failures, (CALLS * (FAILURES as usize - 1)) as u64);
}

/// A master that has become a replica, with many calls under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_to_be_left_is_one_failure_however_many_calls_it_turns_down() {
    for words in [
        &b"-READONLY You can't write against a read only replica.\r\n"[..],
        b"-NOAUTH Authentication required.\r\n",
    ] {
        let (fake, clock) = (silent_about_several(words), ManualClock::new());
        let store = with_breaker(&fake, &clock);
        let call = |call: usize| {
            let (store, charge) = (store.clone(), alone(&call.to_string()));
            tokio::spawn(async move { decide(&store, &charge).await })
        };
        let calls: Vec<_> = (0..64).map(call).collect();
        fake.wait_for("EVALSHA", 64);
        fake.release();
        for call in calls {
            assert!(call.await.expect("no panic").is_err());
        }
        assert_eq!(store.counts().breaker, BreakerState::Closed);
        take(&store).await.expect("a decision");
        assert_eq!((store.counts().failures, store.counts().connections), (64, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_makes_no_sense_closes_no_connection_that_came_later() {
    let mut asked = 0;
    let fake = Fake::new(move |name, _| {
        asked += usize::from(name == "EVALSHA");
        match (name, asked) {
            ("EVALSHA", 1) => Some(Act::Hold(admitted())),
            ("EVALSHA", 2) => Some(Act::Hold(bulk(b"what?"))),
            _ => None,
        }
    });
    let clock = ManualClock::new();
    let pause = DEADLINE / 5;
    let store = builder(&fake, &clock).breaker(1, pause, pause).build().expect("a good URL");
    let late = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE / 2);
    let second = store.clone();
    let in_time = tokio::spawn(async move { decide(&second, &alone("second")).await });
    fake.wait_for("EVALSHA", 2);
    clock.advance(DEADLINE / 2);
    assert_eq!(kind(late.await.expect("no panic")), FailureKind::TooSlow);
    clock.advance(pause);
    crate::until(&store, |counts| counts.connections == 2).await;
    fake.release();
    assert_eq!(kind(in_time.await.expect("no panic")), FailureKind::Script);
    crate::until(&store, |counts| counts.given_back == 1).await;
    clock.advance(pause);
    take(&store).await.expect("a decision");
    assert_eq!(store.counts().connections, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_after_a_connection_broke_wait_for_the_next() {
    let (fake, clock) = (Fake::well(), ManualClock::new());
    for cut in 0..10 {
        let store = builder(&fake, &clock).build().expect("a good URL");
        take(&store).await.expect("a decision");
        fake.hang_up();
        crate::until(&store, |counts| {
            counts.connections == 2 || counts.failures_of(FailureKind::Unreachable) > 0
        })
        .await;
        take(&store).await.expect("a decision");
        assert_eq!(store.counts().failures, 0, "cut {cut}");
    }
}
