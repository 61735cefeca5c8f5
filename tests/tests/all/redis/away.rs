//! A server that is killed, stopped, comes back empty, or never started.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::store::{Fallback, Store};
use sluicegate_core::{Limit, Memory};
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{FailureKind, Redis};
use sluicegate_tests::servers::{Server, until};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::{Load, Tally, attempts};
use super::store::{left, open, patient, settled};

/// The deadline of a decision in these tests: so long that a server that runs keeps it on a busy machine.
const DEADLINE: Duration = Duration::from_secs(1);

/// How much longer a decision may take on a busy machine. This only tells a late decision from one that hangs.
const SLACK: Duration = Duration::from_secs(5);

/// A limit that is never reached.
const PLENTY: Limit = Limit::fixed_window(1_000_000_000, DAY).from_first();

fn prompt(url: &str) -> Redis {
    within(url, DEADLINE)
}

/// For tests of a server that answers or is gone: a late answer of a busy machine would change their counts.
fn steady(url: &str) -> Redis {
    within(url, 5 * DEADLINE)
}

fn within(url: &str, deadline: Duration) -> Redis {
    open(patient().url(url).deadline(deadline).connect_timeout(Duration::from_secs(1)))
}

fn charge(limit: Limit) -> Charge {
    Charge::of(limit, key("alice"), 1)
}

/// Waits until the store decides again, and returns whether it admits.
fn decides(store: &Redis, charge: &Charge) -> bool {
    until("the store to decide again", || Some(answer(store.take(charge)).ok()?.is_admitted()))
}

/// No request was refused because of the server's failure, and none waited for long.
fn was_told_in_time(tally: &Tally) {
    assert_eq!(tally.refused, 0);
    assert!(tally.slowest < DEADLINE + SLACK, "{tally:?}");
}

/// Killed under load: failures come at once, most of them without a call, and the store recovers after the restart
/// without help.
#[test]
fn no_reconnect() {
    let server = Server::start();
    let store = prompt(&server.url());
    let load = Load::start(&store, &charge(PLENTY), 8);
    for _ in 0..3 {
        load.until_answered(300);
        server.kill();
        load.until_failed(5_000);
        // The cut itself is one failure. The attempts to connect again are more.
        until("the breaker to open", || {
            (store.counts().breaker == BreakerState::Open).then_some(())
        });
        server.restart();
    }
    load.until_answered(300);
    was_told_in_time(&load.stop());
    let counts = store.counts();
    assert!(counts.breaker_openings >= 3, "{counts:?}");
    assert!(counts.failures_of(FailureKind::BreakerOpen) > 0, "{counts:?}");
    // Calls that were made. The others failed because there was no connection, or because the breaker was open.
    assert!(counts.unanswered < counts.failures / 2, "{counts:?}");
    assert_eq!(counts.connections, 4, "one for each life of the server");
    assert_eq!(counts.breaker, BreakerState::Closed);
}

/// Connections are cut under load, again and again: what was on its way fails, and nothing else.
#[test]
fn a_connection_that_is_cut_fails_the_calls_on_it_and_opens_no_breaker() {
    const TASKS: u64 = 64;
    const CUTS: u64 = 5;
    for protocol in ["", "?protocol=resp2"] {
        let server = Server::start();
        let store = open(patient().url(&format!("{}{protocol}", server.url())));
        let load = Load::start(&store, &charge(PLENTY), TASKS as usize);
        load.until_answered(300);
        for cut in 1..=CUTS {
            // A connection that lasts for less is replaced after a pause.
            let begun = Instant::now();
            let is_steady = || begun.elapsed() > Duration::from_millis(300);
            until("a steady connection", || is_steady().then_some(()));
            let connections = store.counts().connections;
            server.cli(["CLIENT", "KILL", "TYPE", "normal"]);
            until("a new connection", || (store.counts().connections > connections).then_some(()));
            load.until_answered(300 * cut);
        }
        let tally = load.stop();
        let counts = store.counts();
        assert_eq!(counts.breaker_openings, 0, "{counts:?}");
        assert!(tally.failed <= TASKS * CUTS, "{tally:?}, {counts:?}");
        assert!(tally.slowest < SLACK, "a call was lost: {tally:?}");
    }
}

/// With the older protocol, the server does not announce that the connection is gone. The next call finds out.
#[test]
fn no_reconnect_by_the_older_protocol() {
    let server = Server::start();
    let store = steady(&format!("{}?protocol=resp2", server.url()));
    for _ in 0..3 {
        assert!(decides(&store, &charge(PLENTY)));
        server.restart();
    }
    assert!(decides(&store, &charge(PLENTY)));
}

/// Stopped for a while: the connection is open, but no call is answered. What was charged too late is given back.
#[test]
fn no_deadline() {
    let server = Server::start();
    let store = prompt(&server.url());
    let limit = Limit::fixed_window(1_000_000, DAY).from_first();
    let load = Load::start(&store, &charge(limit), 8);
    load.until_answered(300);
    server.pause();
    load.until_failed(5_000);
    server.resume();
    load.until_answered(300);
    let tally = load.stop();
    was_told_in_time(&tally);
    settled(&store);
    let counts = store.counts();
    assert!(counts.failures_of(FailureKind::TooSlow) > 0, "{counts:?}");
    assert!(counts.failures_of(FailureKind::BreakerOpen) > counts.failures / 2, "{counts:?}");
    let charged = 1_000_000 - left(&store, limit, "alice");
    let unknown = charged.checked_sub(tally.admitted).expect("all that was admitted is charged");
    assert!(unknown <= counts.unanswered, "{unknown} too many are charged: {counts:?}");
}

/// The charge of a request that is dropped before the answer came is given back.
#[test]
fn lost_on_error_or_disconnect() {
    let server = Server::start();
    let store = open(patient().url(&server.url()));
    let limit = Limit::fixed_window(100, DAY).from_first();
    assert!(decides(&store, &charge(limit)));
    server.pause();
    for _ in 0..20 {
        let sluicegate_core::adapter::Answer::Later(mut future) = store.take(&charge(limit)) else {
            panic!("the server is not in this process");
        };
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::Pin::new(&mut future).poll(&mut cx).is_pending());
        drop(future);
    }
    server.resume();
    settled(&store);
    assert_eq!(store.counts().given_back, 20);
    assert_eq!(left(&store, limit, "alice"), 99);
}

/// Given back while the server is stopped, and counted once it continues.
#[test]
fn what_is_held_is_given_back_to_a_server_that_stands_still() {
    let server = Server::start();
    let store = prompt(&server.url());
    let (limit, charge) = (Limit::concurrent(3), charge(Limit::concurrent(3)));
    let take = || answer(store.take(&charge)).ok().filter(Outcome::is_admitted);
    let held: Vec<_> = (0..3).map(|_| until("a place", take)).collect();
    assert_eq!(left(&store, limit, "alice"), 0);
    server.pause();
    for outcome in &held {
        let debit = charge.debits().next().expect("one limit");
        store.settle(debit, &outcome.receipts().next().expect("one limit"), 0);
    }
    // Enough failures to open the breaker, and to close the connection.
    assert!(attempts(&store, &charge, 4, 20).failed > 0);
    server.resume();
    settled(&store);
    until("the store to decide again", || answer(store.peek(&charge)).ok());
    assert_eq!(left(&store, limit, "alice"), 3);
    assert_eq!(store.counts().settled, 3);
}

/// Closed while calls are on their way. It is unknown whether those were charged, and each is counted.
#[test]
fn a_connection_that_is_cut() {
    let server = Server::start();
    let store = prompt(&server.url());
    let limit = Limit::fixed_window(1_000_000, DAY).from_first();
    let load = Load::start(&store, &charge(limit), 8);
    for _ in 0..20 {
        load.until_answered(100);
        server.cli(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    load.until_answered(100);
    let tally = load.stop();
    was_told_in_time(&tally);
    settled(&store);
    let charged = 1_000_000 - left(&store, limit, "alice");
    let unknown = charged.checked_sub(tally.admitted).expect("all that was admitted is charged");
    assert!(unknown <= tally.failed, "{unknown} too many are charged: {tally:?}");
    assert!(store.counts().connections > 10);
}

/// The counts begin anew: the same number is admitted as at first.
#[test]
fn a_restart_with_empty_memory() {
    let server = Server::start();
    let store = steady(&server.url());
    let charge = charge(Limit::fixed_window(5, DAY).from_first());
    for _ in 0..3 {
        assert!(decides(&store, &charge), "the first one");
        let rest = (0..10).filter(|_| decides(&store, &charge)).count();
        assert_eq!(rest, 4);
        server.restart();
        // An old refusal does not affect requests after the restart.
        until("the store to notice", || {
            answer(store.peek(&charge)).ok()?.is_admitted().then_some(())
        });
    }
    assert!(store.counts().scripts_loaded >= 3);
}

/// The store starts without a server, reports the error, and works as soon as the server does.
#[test]
fn a_start_without_redis() {
    let server = Server::start();
    server.kill();
    let store = prompt(&server.url());
    let tally = attempts(&store, &charge(PLENTY), 4, 500);
    assert_eq!(tally.failed, 2_000);
    was_told_in_time(&tally);
    let error = answer(store.take(&charge(PLENTY))).expect_err("there is no server");
    assert!(!error.is_full() && !error.is_too_slow() && !error.is_unsupported());
    server.restart();
    assert!(decides(&store, &charge(PLENTY)));
}

/// The server accepts connections and never answers. No request hangs, and the store does not connect for each
/// request.
#[test]
fn connection_per_request() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("redis://{}/", silent.local_addr().expect("it is bound"));
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in silent.incoming() {
            held.push(stream);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let store = prompt(&url);
    let began = Instant::now();
    let tally = attempts(&store, &charge(PLENTY), 8, 1_000);
    assert_eq!(tally.failed, 8_000);
    was_told_in_time(&tally);
    assert!(began.elapsed() < SLACK * 4, "8,000 decisions took {:?}", began.elapsed());
    let accepted = accepted.load(Ordering::Relaxed);
    assert!(accepted < 40, "{accepted} connections");
}

/// The fallback store decides, with its own share of the limit.
#[test]
fn a_memory_takes_over_and_hands_back() {
    let server = Server::start();
    let store = Fallback(steady(&server.url()), Memory::with_capacity(100));
    let charge = charge(Limit::fixed_window(3, DAY).from_first());
    let admitted = |times| {
        let taken =
            (0..times).map(|_| answer(store.take(&charge)).expect("one of the two stores decides"));
        taken.filter(Outcome::is_admitted).count()
    };
    until("the server to be connected", || store.0.counts().connections.checked_sub(1));
    assert_eq!(admitted(10), 3);
    server.kill();
    assert_eq!(admitted(10), 0, "by the memory, which has counted those three");
    let bob = Charge::of(Limit::fixed_window(3, DAY).from_first(), key("bob"), 1);
    let taken = (0..10).map(|_| answer(store.take(&bob)).expect("one of the two stores decides"));
    assert_eq!(taken.filter(Outcome::is_admitted).count(), 3, "by the memory");
    server.restart();
    until("the server to be asked again", || {
        let decided = store.0.counts().decisions;
        answer(store.peek(&charge)).expect("one of the two stores decides");
        (store.0.counts().decisions > decided).then_some(())
    });
    assert_eq!(admitted(10), 3, "by the server, which has forgotten");
}
