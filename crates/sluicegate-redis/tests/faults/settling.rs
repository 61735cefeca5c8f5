use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::{Charge, Outcome, Receipt};
use sluicegate_core::store::Store;
use sluicegate_redis::Redis;

use crate::fake::{Act, Fake, evaluates, is_charge};
use crate::{DEADLINE, builder, charge, store, take, until};

fn give_back(store: &Redis, charge: &Charge, outcome: &Outcome) {
    for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
        store.settle(debit, &receipt, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_is_sent_before_the_next_call() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let fake = Fake::new(move |name, command| {
        if evaluates(name) {
            seen.lock().unwrap().push(is_charge(command));
        }
        None
    });
    let store = store(&fake, &ManualClock::new());
    for _ in 0..50 {
        let outcome = take(&store).await.expect("a decision");
        give_back(&store, &charge(), &outcome);
    }
    store.flush().await;
    let expected: Vec<_> = (0..100).map(|i| i % 2 == 0).collect();
    assert_eq!(*order.lock().unwrap(), expected);
    assert_eq!(store.counts().settled, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_without_a_change_is_not_sent() {
    let fake = Fake::well();
    let store = store(&fake, &ManualClock::new());
    let outcome = take(&store).await.expect("a decision");
    let (charge, receipt) = (charge(), outcome.receipts().next().expect("one"));
    store.settle(charge.debits().next().expect("one"), &receipt, 1);
    store.flush().await;
    assert_eq!(fake.evaluated(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_waits_for_the_server_to_come_back() {
    let away = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&away);
    let fake = Fake::new(move |_, _| flag.load(Ordering::SeqCst).then_some(Act::Close));
    let store = store(&fake, &ManualClock::new());
    let outcome = take(&store).await.expect("a decision");
    away.store(true, Ordering::SeqCst);
    fake.hang_up();
    fake.wait_for("HELLO", 2);
    give_back(&store, &charge(), &outcome);
    assert_eq!(fake.evaluated(), 1);
    away.store(false, Ordering::SeqCst);
    store.flush().await;
    assert_eq!(fake.evaluated(), 2);
    assert_eq!(store.counts().settled, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_may_have_arrived_is_not_sent_twice() {
    let fake =
        Fake::new(|name, command| (evaluates(name) && !is_charge(command)).then_some(Act::Close));
    let store = store(&fake, &ManualClock::new());
    let outcome = take(&store).await.expect("a decision");
    give_back(&store, &charge(), &outcome);
    store.flush().await;
    until(&store, |counts| counts.connections == 2).await;
    assert_eq!(fake.evaluated(), 2);
    assert_eq!((store.counts().settled, store.counts().settlements_dropped), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn settlements_under_way_are_bounded() {
    let fake = Fake::new(|name, command| {
        (evaluates(name) && !is_charge(command)).then(|| Act::Hold(b":1\r\n".to_vec()))
    });
    let clock = ManualClock::new();
    let store = builder(&fake, &clock).background(2, DEADLINE).build().expect("a good URL");
    let outcome = take(&store).await.expect("a decision");
    for _ in 0..5 {
        give_back(&store, &charge(), &outcome);
    }
    assert_eq!(store.counts().settlements_dropped, 3);
    fake.wait_for("EVAL", 1);
    fake.wait_for("EVALSHA", 2);
    fake.release();
    store.flush().await;
    assert_eq!(store.counts().settled, 2);
}

/// A ticket can be dropped anywhere.
#[test]
fn it_settles_from_a_thread_without_a_runtime() {
    let fake = Fake::well();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(async { store(&fake, &ManualClock::new()) });
    let outcome = runtime.block_on(take(&store)).expect("a decision");
    give_back(&store, &charge(), &outcome);
    runtime.block_on(store.flush());
    assert_eq!(store.counts().settled, 1);
}

#[test]
fn a_settlement_that_cannot_be_sent_is_counted() {
    let store = Redis::connect("redis://127.0.0.1:1").expect("a good URL");
    let charge = charge();
    store.settle(charge.debits().next().expect("one"), &Receipt::default(), 0);
    assert_eq!(store.counts().settlements_dropped, 1);
}
