//! Tokens that are taken out in batches.

mod carried;
mod processes;
mod settling;
mod time;

use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Outcome};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::{Leased, Redis};
use sluicegate_tests::conformance;
use sluicegate_tests::servers::{Server, until};
use sluicegate_tests::{answer, block_on, key};
use tokio::task::JoinSet;

use super::DAY;
use super::store::{by_hand, left, on, open, own_prefix, patient, runtime, shared};

/// Nothing of it is refilled during a test.
const HUNDRED: Limit = Limit::fixed_window(100, DAY).from_first();

/// Leases of one token are charges like any other.
fn one_by_one(clock: &ManualClock) -> Leased {
    Leased::new(open(by_hand(clock).url(&shared().url())), 1..=1)
}

conformance!(leases_of_one, one_by_one, flushed);

fn flushed(store: &Leased) {
    runtime().block_on(store.flush());
}

fn charge(limit: Limit) -> Charge {
    Charge::of(limit, key("alice"), 1)
}

/// A store with leases and one without, which share a server's rows.
fn pair(server: &Server, batch: RangeInclusive<u64>) -> (Leased, Redis) {
    let prefix = own_prefix();
    let store = || open(patient().url(&server.url()).prefix(&prefix));
    (Leased::new(store(), batch), store())
}

async fn take(store: &Leased, charge: &Charge) -> Result<Outcome, StoreError> {
    match store.take(charge) {
        Answer::Now(outcome) => outcome,
        Answer::Later(future) => future.await,
    }
}

/// Runs this many tasks with this many attempts each. Returns how many were admitted.
fn admitted(store: &Leased, charge: &Charge, tasks: usize, each: usize) -> u64 {
    runtime().block_on(async {
        let mut set = JoinSet::new();
        for _ in 0..tasks {
            let (store, charge) = (store.clone(), charge.clone());
            set.spawn(async move {
                let mut admitted = 0;
                for _ in 0..each {
                    let outcome = take(&store, &charge).await.expect("the store answers");
                    admitted += u64::from(outcome.is_admitted());
                    tokio::task::yield_now().await;
                }
                admitted
            });
        }
        set.join_all().await.into_iter().sum()
    })
}

/// Whether a request goes ahead without a future.
fn is_at_once<F>(answer: &Answer<F>) -> bool {
    matches!(answer, Answer::Now(Ok(outcome)) if outcome.is_admitted())
}

#[test]
fn what_is_there_is_spent_without_asking() {
    let (store, redis) = pair(shared(), 50..=50);
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 1), 1);
    let answered = (0..30).filter(|_| is_at_once(&store.take(&charge(HUNDRED)))).count();
    assert_eq!(answered, 30);
    assert_eq!(left(&redis, HUNDRED, "alice"), 50);
    assert_eq!(store.redis().counts().decisions, 1);
}

#[test]
fn one_process_gets_exactly_the_limit() {
    for limit in [HUNDRED, Limit::per_day(100)] {
        let (store, redis) = pair(shared(), 1..=64);
        let admitted = admitted(&store, &charge(limit), 8, 100);
        let counts = store.counts();
        assert_eq!(admitted + counts.expired, 100, "{limit}: {counts:?}");
        assert_eq!(counts.spent, admitted);
        assert_eq!(left(&redis, limit, "alice"), 0);
        assert!(store.redis().counts().decisions < 60, "{limit}: {counts:?}");
    }
}

#[test]
fn what_is_unspent_is_given_back_when_the_store_is_dropped() {
    let (store, redis) = pair(shared(), 50..=50);
    let another = store.clone();
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 10), 10);
    drop(store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 50);
    drop(another);
    until("what was given back", || (left(&redis, HUNDRED, "alice") == 90).then_some(()));
}

#[test]
fn what_is_unspent_is_given_back_when_the_store_is_flushed() {
    let (store, redis) = pair(shared(), 1..=50);
    for name in 0..100 {
        let charge = Charge::of(HUNDRED, key(&name.to_string()), 1);
        assert_eq!(admitted(&store, &charge, 1, 10), 10);
    }
    assert!(store.counts().unspent > 0);
    flushed(&store);
    assert_eq!(store.counts().unspent, 0);
    for name in 0..100 {
        assert_eq!(left(&redis, HUNDRED, &name.to_string()), 90);
    }
    // The store continues.
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 10), 10);
}

/// All requests come at once, and one call serves them.
#[test]
fn no_stampede() {
    let server = Server::start();
    let (store, _) = pair(&server, 1..=50);
    assert_eq!(admitted(&store, &Charge::of(HUNDRED, key("to get connected"), 1), 1, 1), 1);
    server.pause();
    let (mut set, charge) = (JoinSet::new(), charge(HUNDRED));
    for _ in 0..80 {
        let Answer::Later(future) = store.take(&charge) else {
            panic!("there are no tokens in hand")
        };
        set.spawn_on(future, runtime().handle());
    }
    server.resume();
    let outcomes = runtime().block_on(set.join_all());
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_ok_and(Outcome::is_admitted)));
    assert!(store.redis().counts().decisions <= 3, "{:?}", store.redis().counts());
}

/// What they were to get is left for others.
#[test]
fn lost_on_error_or_disconnect() {
    let server = Server::start();
    let (store, redis) = pair(&server, 1..=50);
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 1), 1);
    server.pause();
    for round in 0..20 {
        let Answer::Later(mut future) = store.take(&charge(HUNDRED)) else {
            panic!("there are no tokens in hand")
        };
        // Polled or not.
        if round % 2 == 0 {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(std::pin::Pin::new(&mut future).poll(&mut cx).is_pending());
        }
        drop(future);
    }
    server.resume();
    // One call for the first request, and one for those that came meanwhile.
    until("the leases", || (store.counts().leases == 3).then_some(()));
    until("what nobody waits for", || (store.counts().spent == 1).then_some(()));
    flushed(&store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 99);
}

/// A lease that comes after the deadline is an error for the request that waited. The next request can spend it.
#[test]
fn no_deadline() {
    let server = Server::start();
    let builder = patient().url(&server.url()).deadline(Duration::from_millis(100));
    let store = Leased::new(open(builder), 50..=50);
    let other = Charge::of(HUNDRED, key("to get connected"), 1);
    until("the connection", || answer(store.take(&other)).ok());
    server.pause();
    let error = answer(store.take(&charge(HUNDRED))).expect_err("nobody answers");
    assert!(error.is_too_slow(), "{error}");
    let before = store.counts().unspent;
    server.resume();
    until("the late answer", || (store.counts().unspent == before + 50).then_some(()));
    assert!(is_at_once(&store.take(&charge(HUNDRED))));
    assert_eq!(store.redis().counts().refused, 0);
}

/// A request that waits when the runtime ends gets an error.
#[test]
fn a_runtime_that_ends() {
    let server = Server::start();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    let redis = runtime.block_on(async { patient().url(&server.url()).build() });
    let store = Leased::new(redis.expect("the settings are valid"), 1..=50);
    assert!(answer(store.take(&charge(HUNDRED))).is_ok());
    server.pause();
    let Answer::Later(future) = store.take(&charge(HUNDRED)) else {
        panic!("there are no tokens in hand")
    };
    drop(runtime);
    assert!(block_on(future).is_err());
}

/// Tokens in hand are spent while the server is away. After that the answer is an error, never a refusal.
#[test]
fn a_restart_of_the_server() {
    let server = Server::start();
    let store = Leased::new(on(&server), 50..=50);
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 1), 1);
    server.kill();
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 49), 49);
    until("the error", || answer(store.take(&charge(HUNDRED))).err());
    server.restart();
    until("the server to be asked", || answer(store.take(&charge(HUNDRED))).ok());
    assert_eq!(store.redis().counts().refused, 0);
}

#[test]
fn what_cannot_be_leased_is_passed_on() {
    let (store, redis) = pair(shared(), 1..=50);
    let mut several = charge(Limit::fixed_window(90, DAY).from_first());
    several.add(HUNDRED, key("alice"), 1).expect("two limits");
    let others = [
        charge(Limit::sliding_log(100, DAY)),
        charge(Limit::per_day(100).refill(100, DAY)),
        charge(Limit::per_day(100).ban(DAY)),
        charge(HUNDRED).patient(DAY),
        Charge::of(HUNDRED, key("alice"), 51),
        several,
    ];
    for (at, charge) in others.iter().enumerate() {
        assert_eq!(admitted(&store, charge, 1, 1), 1, "{charge:?}");
        assert_eq!(store.counts().passed_on, at as u64 + 1, "{charge:?}");
    }
    // Three of these were charged to one row, which is leased from as well.
    assert_eq!(left(&redis, HUNDRED, "alice"), 100 - 53);
    assert_eq!(admitted(&store, &charge(HUNDRED), 4, 50), 47);
}

/// Keys beyond the capacity are decided by the server.
#[test]
fn unbounded_keys() {
    let store = Leased::with_capacity(on(shared()), 50..=50, 8);
    for name in 0..100 {
        let charge = Charge::of(HUNDRED, key(&name.to_string()), 1);
        assert_eq!(admitted(&store, &charge, 1, 3), 3);
    }
    let counts = store.counts();
    assert_eq!((counts.leases, counts.passed_on), (8, 92 * 3), "{counts:?}");
}
