//! Clusters of two scripted servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::{FailureKind, Redis};

use crate::fake::{Act, Fake, admitted, bulk, full, held, is_charge, is_renewal, queued, refused};
use crate::{DEADLINE, charge, charge_of, decide, kind, quick};

/// The first slot of the second server. Set once both have a port.
#[derive(Clone, Default)]
struct Ports(Arc<[AtomicU16; 2]>);

impl Ports {
    fn slots(&self) -> Vec<u8> {
        let port = |i: usize| self.0[i].load(Ordering::SeqCst);
        let range = |first: u16, last: u16, port: u16| {
            format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
        };
        format!("*2\r\n{}{}", range(0, 8_191, port(0)), range(8_192, 16_383, port(1))).into_bytes()
    }

    fn of(&self, fakes: &[Fake; 2]) {
        for (port, fake) in self.0.iter().zip(fakes) {
            port.store(fake.port(), Ordering::SeqCst);
        }
    }
}

type Told = Box<dyn FnMut(&str, &Vec<Vec<u8>>) -> Option<Act> + Send>;

/// Two servers, of which one has the lower half of the slots, and the other the upper.
fn two(told: [Told; 2]) -> [Fake; 2] {
    let ports = Ports::default();
    let fakes = told.map(|mut told| {
        let ports = ports.clone();
        Fake::new(move |name, command| match name {
            "CLUSTER" => Some(Act::Say(ports.slots())),
            _ => told(name, command),
        })
    });
    ports.of(&fakes);
    fakes
}

fn well() -> Told {
    Box::new(|_, _| None)
}

fn says(words: impl Fn() -> Vec<u8> + Send + 'static) -> Told {
    Box::new(move |name, command| {
        (name == "EVALSHA" && is_charge(command)).then(|| Act::Say(words()))
    })
}

fn cluster(fakes: &[Fake; 2]) -> Redis {
    with_clock(fakes, &ManualClock::new())
}

fn with_clock(fakes: &[Fake; 2], clock: &ManualClock) -> Redis {
    let urls = fakes.each_ref().map(Fake::url);
    quick(Redis::builder().cluster(urls).clock(clock)).build().expect("good URLs")
}

/// A key in the lower half and one in the upper, found by trying.
async fn keys(store: &Redis, fakes: &[Fake; 2]) -> [String; 2] {
    let mut found = [None, None];
    for i in 0..1_000 {
        let name = format!("key-{i}");
        let before = fakes.each_ref().map(|fake| fake.seen("EVALSHA"));
        let _ = decide(store, &charge_of(&name)).await;
        for half in 0..2 {
            if fakes[half].seen("EVALSHA") > before[half] {
                found[half].get_or_insert_with(|| name.clone());
            }
        }
        if let [Some(lower), Some(upper)] = &found {
            return [lower.clone(), upper.clone()];
        }
    }
    panic!("no keys in both halves");
}

fn both(keys: &[String; 2]) -> Charge {
    let mut charge = Charge::new();
    for key in keys {
        charge.add(Limit::per_minute(100), KeyBuf::of(key), 1).expect("room");
    }
    charge
}

#[tokio::test(flavor = "multi_thread")]
async fn each_slot_is_decided_by_the_node_that_serves_it() {
    let fakes = two([well(), well()]);
    let store = cluster(&fakes);
    let keys = keys(&store, &fakes).await;
    let before = fakes.each_ref().map(|fake| fake.seen("EVALSHA"));
    let outcome = decide(&store, &both(&keys)).await.expect("a decision");
    assert!(outcome.is_admitted());
    assert_eq!(outcome.receipts().count(), 2);
    for (fake, before) in fakes.iter().zip(before) {
        fake.wait_for("EVALSHA", before + 1);
        assert_eq!(fake.seen("EVALSHA"), before + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_slot_charged_is_given_back_when_another_refuses() {
    let refuses = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&refuses);
    let second = says(move || match flag.load(Ordering::SeqCst) {
        true => refused(),
        false => admitted(),
    });
    let fakes = two([well(), second]);
    let store = cluster(&fakes);
    let keys = keys(&store, &fakes).await;
    refuses.store(true, Ordering::SeqCst);
    let outcome = decide(&store, &both(&keys)).await.expect("a decision");
    assert!(!outcome.is_admitted());
    assert_eq!(outcome.retry_after(), Some(Duration::from_secs(1)));
    store.flush().await;
    assert_eq!(store.counts().settled, 1);
    assert_eq!((store.counts().refused, store.counts().failures), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_would_wait_in_one_of_several_slots_is_refused() {
    let waits = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&waits);
    let second = says(move || match flag.load(Ordering::SeqCst) {
        true => queued(),
        false => admitted(),
    });
    let fakes = two([well(), second]);
    let store = cluster(&fakes);
    let keys = keys(&store, &fakes).await;
    waits.store(true, Ordering::SeqCst);
    let outcome = decide(&store, &both(&keys)).await.expect("a decision");
    assert!(!outcome.is_admitted());
    assert_eq!(outcome.retry_after(), Some(Duration::from_secs(1)));
    store.flush().await;
    assert_eq!(store.counts().settled, 2, "both are given back");
}

/// A place is given back even if its request drops the answer halfway.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_slot_charged_is_given_back_when_the_request_is_dropped() {
    let holds = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&holds);
    let second: Told = Box::new(move |name, command| {
        let holds = name == "EVALSHA" && is_charge(command) && flag.load(Ordering::SeqCst);
        holds.then(|| Act::Hold(admitted()))
    });
    let fakes = two([well(), second]);
    let store = cluster(&fakes);
    let keys = keys(&store, &fakes).await;
    holds.store(true, Ordering::SeqCst);
    let asked = fakes[1].seen("EVALSHA");
    let (asking, charge) = (store.clone(), both(&keys));
    let task = tokio::spawn(async move { decide(&asking, &charge).await });
    fakes[1].wait_for("EVALSHA", asked + 1);
    task.abort();
    assert!(task.await.expect_err("aborted").is_cancelled());
    fakes[1].release();
    store.flush().await;
    assert_eq!((store.counts().settled, store.counts().given_back), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_slot_charged_is_given_back_when_another_fails() {
    let fails = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&fails);
    let second = says(move || match flag.load(Ordering::SeqCst) {
        true => b"-OOM command not allowed.\r\n".to_vec(),
        false => admitted(),
    });
    let fakes = two([well(), second]);
    let store = cluster(&fakes);
    let keys = keys(&store, &fakes).await;
    fails.store(true, Ordering::SeqCst);
    assert_eq!(kind(decide(&store, &both(&keys)).await), FailureKind::OutOfMemory);
    store.flush().await;
    assert_eq!(store.counts().settled, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_has_moved_is_found_once_and_then_called_directly() {
    let to = Arc::new(AtomicU16::new(0));
    let address = |to: &Arc<AtomicU16>| {
        let to = Arc::clone(to);
        says(move || format!("-MOVED 1 127.0.0.1:{}\r\n", to.load(Ordering::SeqCst)).into_bytes())
    };
    let elsewhere = Fake::well();
    to.store(elsewhere.port(), Ordering::SeqCst);
    let fakes = two([address(&to), address(&to)]);
    let store = cluster(&fakes);
    for _ in 0..3 {
        assert!(decide(&store, &charge()).await.expect("a decision").is_admitted());
    }
    assert_eq!(fakes.iter().map(|fake| fake.seen("EVALSHA")).sum::<usize>(), 1);
    elsewhere.wait_for("EVALSHA", 3);
    assert_eq!(store.counts().failures, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_moving_is_called_with_asking() {
    let elsewhere = Fake::well();
    let port = elsewhere.port();
    let ask = || says(move || format!("-ASK 1 127.0.0.1:{port}\r\n").into_bytes());
    let fakes = two([ask(), ask()]);
    let store = cluster(&fakes);
    for _ in 0..3 {
        assert!(decide(&store, &charge()).await.expect("a decision").is_admitted());
    }
    assert_eq!(fakes.iter().map(|fake| fake.seen("EVALSHA")).sum::<usize>(), 3);
    elsewhere.wait_for("EVALSHA", 3);
    assert_eq!(elsewhere.seen("ASKING"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_does_not_affect_another() {
    let down = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&down);
    let second: Told = Box::new(move |_, _| flag.load(Ordering::SeqCst).then_some(Act::Close));
    let fakes = two([well(), second]);
    let store = cluster(&fakes);
    let [lower, upper] = keys(&store, &fakes).await;
    down.store(true, Ordering::SeqCst);
    fakes[1].hang_up();
    for _ in 0..20 {
        assert!(decide(&store, &charge_of(&upper)).await.is_err());
        decide(&store, &charge_of(&lower)).await.expect("the other node works");
    }
    assert_eq!(store.counts().breaker_openings, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_refused_is_remembered_while_another_fails() {
    let sick = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&sick);
    let second: Told = Box::new(move |name, _| {
        (name == "EVALSHA" && flag.load(Ordering::SeqCst)).then_some(Act::Close)
    });
    let first = Arc::new(AtomicBool::new(false));
    let refuses = Arc::clone(&first);
    let fakes = two([
        says(move || match refuses.load(Ordering::SeqCst) {
            true => full(),
            false => admitted(),
        }),
        second,
    ]);
    let urls = fakes.each_ref().map(Fake::url);
    let builder = quick(Redis::builder().cluster(urls).clock(&ManualClock::new()));
    let builder = builder.remember_refusals(64, Duration::MAX);
    let store = builder.breaker(0, Duration::from_secs(1), Duration::from_secs(1)).build();
    let store = store.expect("good URLs");
    let [lower, upper] = keys(&store, &fakes).await;
    first.store(true, Ordering::SeqCst);
    assert!(!decide(&store, &charge_of(&lower)).await.expect("a decision").is_admitted());
    sick.store(true, Ordering::SeqCst);
    let asked = fakes[0].seen("EVALSHA");
    let connections = store.counts().connections;
    while store.counts().connections < connections + 3 {
        assert!(decide(&store, &charge_of(&upper)).await.is_err());
        assert!(!decide(&store, &charge_of(&lower)).await.expect("a decision").is_admitted());
    }
    assert_eq!(fakes[0].seen("EVALSHA"), asked, "it is known");
}

/// Two nodes that redirect every script to each other.
fn sent_around(code: &'static str) -> [Fake; 2] {
    let ports = Ports::default();
    let to = |other: usize| {
        let ports = ports.clone();
        says(move || {
            let port = ports.0[other].load(Ordering::SeqCst);
            format!("-{code} 1 127.0.0.1:{port}\r\n").into_bytes()
        })
    };
    let fakes = two([to(1), to(0)]);
    ports.of(&fakes);
    fakes
}

/// The clock stands still, so the deadline does not end it.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_redirect_to_each_other_for_ever_cost_sixteen_calls_a_decision() {
    for code in ["MOVED", "ASK"] {
        let fakes = sent_around(code);
        let store = cluster(&fakes);
        for decision in 1..=10 {
            assert_eq!(kind(decide(&store, &charge()).await), FailureKind::Cluster, "{code}");
            let calls: usize = fakes.iter().map(|fake| fake.seen("EVALSHA")).sum();
            assert_eq!(calls, 16 * decision, "{code}");
        }
        let counts = store.counts();
        assert_eq!((counts.breaker_openings, counts.unanswered), (0, 0), "{code}");
        assert!(counts.connections <= 2, "{code}: {} connections", counts.connections);
    }
}

const MOVING: &[u8] = b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_is_asked_again_while_there_is_time() {
    let left = Arc::new(AtomicU16::new(40));
    let moves = || {
        let left = Arc::clone(&left);
        let moves_on = move || {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        };
        says(move || moves_on().map_or_else(|_| admitted(), |_| MOVING.to_vec()))
    };
    let fakes = two([moves(), moves()]);
    let store = cluster(&fakes);
    assert!(decide(&store, &charge()).await.expect("a decision").is_admitted());
    assert_eq!(left.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_goes_on_moving_fails_its_calls_before_their_deadline() {
    let moves = || says(|| MOVING.to_vec());
    let (clock, fakes) = (ManualClock::new(), two([moves(), moves()]));
    let store = with_clock(&fakes, &clock);
    let asking = store.clone();
    let call = tokio::spawn(async move { decide(&asking, &charge()).await });
    let calls = || fakes.iter().map(|fake| fake.seen("EVALSHA")).sum::<usize>();
    crate::until(&store, |_| calls() > 16).await;
    clock.advance(DEADLINE * 4 / 5);
    assert_eq!(kind(call.await.expect("no panic")), FailureKind::Cluster);
    assert_eq!(store.counts().unanswered, 0);
}

/// A server with places, which answers renewals or not.
fn with_places(renews: bool) -> Told {
    Box::new(move |name, command| match name {
        "EVALSHA" if is_charge(command) => Some(Act::Say(held())),
        "EVALSHA" if is_renewal(command) && renews => Some(Act::Say(bulk(&[0]))),
        "EVALSHA" => Some(Act::Nothing),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_makes_no_renewal_on_another_late() {
    const PAUSE: Duration = Duration::from_millis(2_500);
    let clock = ManualClock::new();
    let fakes = two([with_places(true), with_places(false)]);
    let store = with_clock(&fakes, &clock);
    for key in keys(&store, &fakes).await {
        let held = Charge::of(Limit::concurrent(8), KeyBuf::of(&*key), 1);
        assert!(decide(&store, &held).await.expect("a decision").is_admitted());
    }
    let before = fakes[0].seen("EVALSHA");
    // There are four heartbeats in this time, if none waits for the answers to the one before.
    for _ in 0..49 {
        clock.advance(PAUSE / 10);
        // Others that are ready run first.
        for _ in 0..100 {
            let _ = tokio::spawn(tokio::task::yield_now()).await;
        }
    }
    fakes[0].wait_for("EVALSHA", before + 3);
}

/// The call keeps its place in the background until its parts are given back.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_slot_charged_is_given_back_although_too_many_settlements_are_under_way() {
    let down = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&down);
    let second: Told = Box::new(move |_, _| flag.load(Ordering::SeqCst).then_some(Act::Close));
    let fakes = two([well(), second]);
    let urls = fakes.each_ref().map(Fake::url);
    let builder = quick(Redis::builder().cluster(urls).clock(&ManualClock::new()));
    let store = builder.background(1, Duration::from_secs(30)).build().expect("good URLs");
    let keys = keys(&store, &fakes).await;
    let upper = charge_of(&keys[1]);
    let outcome = decide(&store, &upper).await.expect("a decision");
    down.store(true, Ordering::SeqCst);
    fakes[1].hang_up();
    crate::until(&store, |_| fakes[1].seen("HELLO") > 1).await;
    // The one settlement that there is room for waits until the second server is back.
    let receipt = outcome.receipts().next().expect("one");
    store.settle(upper.debits().next().expect("one"), &receipt, 0);
    assert!(decide(&store, &both(&keys)).await.is_err());
    crate::until(&store, |counts| counts.settled == 1).await;
    assert_eq!(store.counts().settlements_dropped, 0);
}
