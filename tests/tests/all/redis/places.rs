//! Places of concurrency limits, and the processes that hold them.

use std::convert::Infallible;
use std::env;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use sluicegate_axum::RateLimitLayer;
use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Global, Limit, ManualClock};
use sluicegate_redis::Redis;
use sluicegate_tests::servers::{Server, until};
use sluicegate_tests::{answer, key};
use tower::{Layer, ServiceExt, service_fn};

use super::store::{by_hand, left, on, open, own_prefix, patient, rows, runtime, settled, shared};
use super::worker::Worker;

const EIGHT: Limit = Limit::concurrent(8);
const LEASE: Duration = Duration::from_secs(10);
/// The shortest time between two renewals.
const PAUSE: Duration = Duration::from_millis(2_500);

fn alice(limit: Limit, cost: u64) -> Charge {
    Charge::of(limit, key("alice"), cost)
}

fn take(store: &Redis, charge: &Charge) -> Outcome {
    answer(store.take(charge)).expect("the store answers")
}

fn give_back(store: &Redis, charge: &Charge, outcome: &Outcome) {
    let (debit, receipt) = (charge.debits().next(), outcome.receipts().next());
    store.settle(debit.expect("one"), &receipt.expect("one"), 0);
    settled(store);
}

/// Turns the clock until a row is renewed. Near the heartbeat in small steps: a holder that waits for a processor
/// meanwhile loses little of its lease.
fn until_renewed(clock: &ManualClock, is_renewed: impl Fn() -> bool) {
    clock.advance(PAUSE * 9 / 10);
    until("the row to be renewed", || {
        clock.advance(PAUSE / 100);
        is_renewed().then_some(())
    });
}

/// Two stores with one limit, as two processes have them, and their clock.
fn pair() -> (Redis, Redis, ManualClock, String) {
    let (clock, prefix) = (ManualClock::new(), own_prefix());
    let [one, other] = [(); 2].map(|()| {
        open(by_hand(&clock).concurrency_lease(LEASE).url(&shared().url()).prefix(&prefix))
    });
    (one, other, clock, prefix)
}

#[test]
fn a_holder_dies_with_what_it_holds() {
    let prefix = own_prefix();
    let test = "places::a_process_that_will_be_killed";
    let mut holders: Vec<_> =
        (0..4).map(|_| Worker::start(test, "SLUICEGATE_HOLDER", &prefix)).collect();
    holders.iter_mut().for_each(Worker::is_ready);
    let store = open(patient().url(&shared().url()).prefix(&prefix));
    assert!(!take(&store, &alice(EIGHT, 1)).is_admitted());
    holders.into_iter().for_each(Worker::kill);
    let all = alice(EIGHT, 8);
    until("the leases of the dead to end", || take(&store, &all).is_admitted().then_some(()));
}

/// Holds two places. Does nothing in an ordinary test run.
#[test]
fn a_process_that_will_be_killed() {
    let (Ok(url), Ok(prefix)) = (env::var("SLUICEGATE_HOLDER"), env::var("SLUICEGATE_PREFIX"))
    else {
        return;
    };
    let lease = Duration::from_secs(5);
    let store = open(patient().url(&url).prefix(&prefix).concurrency_lease(lease));
    assert!(take(&store, &alice(EIGHT, 2)).is_admitted());
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the parent process runs");
}

/// For example the hours of an upgraded connection.
#[test]
fn what_is_held_for_longer_than_the_lease_is_renewed() {
    let (holder, other, clock, prefix) = pair();
    let charge = alice(EIGHT, 8);
    let held = take(&holder, &charge);
    let row = rows(shared(), &prefix).pop().expect("a row");
    let bytes = || shared().cli(["GET", &row]);
    for _ in 0..12 {
        let before = bytes();
        until_renewed(&clock, || bytes() != before);
        assert!(!take(&other, &charge).is_admitted());
    }
    give_back(&holder, &charge, &held);
    assert!(take(&other, &charge).is_admitted());
}

/// They change nothing on the server, and are no renewals.
#[test]
fn a_place_is_renewed_while_requests_for_it_are_refused() {
    let (holder, other, clock, prefix) = pair();
    let only = alice(Limit::concurrent(1), 1);
    assert!(take(&holder, &only).is_admitted());
    let row = rows(shared(), &prefix).pop().expect("a row");
    let bytes = || shared().cli(["GET", &row]);
    for _ in 0..12 {
        let before = bytes();
        until_renewed(&clock, || {
            assert!(!take(&holder, &only).is_admitted(), "the place is held");
            bytes() != before
        });
    }
    assert!(!take(&other, &only).is_admitted());
}

#[test]
fn places_that_are_lost_are_counted_once() {
    let (holder, _, clock, prefix) = pair();
    assert!(take(&holder, &alice(EIGHT, 8)).is_admitted());
    let lost = rows(shared(), &prefix).pop().expect("a row");
    assert!(take(&holder, &Charge::of(EIGHT, key("bob"), 1)).is_admitted());
    let kept = rows(shared(), &prefix).into_iter().find(|row| *row != lost).expect("two rows");
    let bytes = || shared().cli(["GET", &kept]);
    shared().cli(["DEL", &lost]);
    for _ in 0..10 {
        let before = bytes();
        until_renewed(&clock, || bytes() != before);
    }
    assert_eq!(holder.counts().places_lost, 1);
}

/// Its clock stands still, and so does its work in the background.
#[test]
fn a_process_that_was_stopped_gives_back_nothing_that_is_another_s() {
    let prefix = own_prefix();
    let (stopped, running) = (ManualClock::new(), ManualClock::new());
    let on_clock =
        |clock| open(by_hand(clock).concurrency_lease(LEASE).url(&shared().url()).prefix(&prefix));
    let (one, other) = (on_clock(&stopped), on_clock(&running));
    let (three, five) = (alice(EIGHT, 3), alice(EIGHT, 5));
    let lost = take(&one, &five);
    running.advance(LEASE);
    let others = take(&other, &five);
    assert!(others.is_admitted());
    stopped.advance(LEASE);
    give_back(&one, &five, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 3);
    let own = take(&one, &three);
    give_back(&one, &five, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 0);
    give_back(&one, &three, &own);
    give_back(&other, &five, &others);
    assert_eq!(left(&other, EIGHT, "alice"), 8);
}

#[test]
fn a_store_that_is_gone_renews_nothing() {
    let (gone, other, clock, _) = pair();
    let all = alice(EIGHT, 8);
    assert!(take(&gone, &all).is_admitted());
    drop(gone);
    clock.advance(LEASE);
    assert!(take(&other, &all).is_admitted());
}

#[test]
fn many_rows_are_renewed_in_few_commands() {
    let server = Server::start();
    let clock = ManualClock::new();
    let store = open(by_hand(&clock).concurrency_lease(LEASE).url(&server.url()));
    let calls = || {
        let stats = server.cli(["INFO", "commandstats"]).text();
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = line.map_or("0", |line| line.split(',').next().expect("a number"));
        calls.parse::<u64>().expect("a number")
    };
    runtime().block_on(async {
        let takes: Vec<_> = (0..1_000)
            .map(|number| {
                let (store, charge) =
                    (store.clone(), Charge::of(EIGHT, key(&number.to_string()), 1));
                tokio::spawn(async move { super::load::take(&store, &charge).await })
            })
            .collect();
        for taken in takes {
            assert!(taken.await.expect("it runs").expect("an answer").is_admitted());
        }
    });
    let first = rows(&server, "").pop().expect("rows");
    let (before, bytes) = (calls(), server.cli(["GET", &first]));
    clock.advance(PAUSE);
    until("the rows to be renewed", || (calls() >= before + 1_000_u64.div_ceil(64)).then_some(()));
    until("this row to be renewed", || (server.cli(["GET", &first]) != bytes).then_some(()));
    assert!(calls() - before <= 2 * 1_000_u64.div_ceil(64), "{}", calls() - before);
}

/// The answer was lost with the connection, so the process does not know about the place.
#[test]
fn a_place_that_was_taken_over_a_connection_that_broke_is_free_again() {
    let server = Server::start();
    let store = on(&server);
    let charge = alice(EIGHT, 1);
    let held = take(&store, &charge);
    assert!(held.is_admitted());
    let lose = || {
        server.pause();
        let sluicegate_core::adapter::Answer::Later(mut future) = store.take(&charge) else {
            panic!("the server is not in this process");
        };
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::Pin::new(&mut future).poll(&mut cx).is_pending());
        drop(future);
        server.resume();
    };
    (0..3).for_each(|_| lose());
    settled(&store);
    until("what nobody waits for to be given back", || {
        (left(&store, EIGHT, "alice") == 7).then_some(())
    });
}

/// A response whose body is sent for longer than several leases.
#[test]
fn a_stream_holds_its_place_on_the_server_until_its_body_ends() {
    let (store, _, clock, prefix) = pair();
    let layer = RateLimitLayer::new(Limit::concurrent(1).by(Global)).store(store.clone());
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::from("streamed")))
    }));
    let send = || {
        let service = service.clone();
        runtime().block_on(service.oneshot(Request::new(Body::empty()))).expect("infallible")
    };
    let streaming = send();
    assert_eq!(streaming.status(), 200);
    let row = rows(shared(), &prefix).pop().expect("a row");
    let bytes = || shared().cli(["GET", &row]);
    for _ in 0..12 {
        let before = bytes();
        until_renewed(&clock, || bytes() != before);
        assert_eq!(send().status(), 429, "the body has not ended");
    }
    runtime().block_on(streaming.into_body().collect()).expect("a body");
    settled(&store);
    let second = send();
    assert_eq!(second.status(), 200, "the first has ended");
    drop(second);
    settled(&store);
    assert_eq!(send().status(), 200, "a body that is dropped has ended, too");
}
