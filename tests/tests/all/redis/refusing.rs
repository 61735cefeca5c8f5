//! A server that runs but refuses to do its work.

use std::error::Error;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::{Store, StoreError};
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{Failure, FailureKind, Redis};
use sluicegate_tests::servers::{Connection, Replica, Reply, Sentinel, Server, until};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::attempts;
use super::store::{left, on, open, own_prefix, patient, rows, shared};

const FIVE: Limit = Limit::fixed_window(5, DAY).from_first();

fn charge(name: &str) -> Charge {
    Charge::of(FIVE, key(name), 1)
}

fn kind(error: &StoreError) -> Option<FailureKind> {
    let failure = error.source()?.downcast_ref::<Failure>()?;
    Some(failure.kind())
}

/// The kind of failure, whether the breaker is open or not.
fn fails_as(store: &Redis, charge: &Charge, expected: FailureKind) {
    until("the server to be asked", || {
        let error = answer(store.take(charge)).expect_err("the server cannot");
        let kind = kind(&error).expect("a failure of this store");
        if kind == FailureKind::BreakerOpen {
            return None;
        }
        assert_eq!(kind, expected, "{error}");
        Some(())
    });
}

fn decides(store: &Redis, charge: &Charge) -> bool {
    until("the store to decide again", || Some(answer(store.take(charge)).ok()?.is_admitted()))
}

/// The server has no memory left and evicts nothing. That says nothing about the client.
#[test]
fn store_failure_answered_as_429() {
    let server = Server::start_with(["--maxmemory-policy", "noeviction"]);
    let store = on(&server);
    assert!(decides(&store, &charge("alice")));
    for _ in 0..2 {
        server.cli(["CONFIG", "SET", "maxmemory", "1"]);
        for name in ["alice", "bob", "carol"] {
            fails_as(&store, &charge(name), FailureKind::OutOfMemory);
        }
        assert!(store.counts().refused == 0);
        server.cli(["CONFIG", "SET", "maxmemory", "0"]);
        assert!(decides(&store, &charge("bob")));
    }
}

/// It accepts no writes until it is promoted. Then it continues from the old master's data.
#[test]
fn a_replica_is_a_failure_until_it_is_promoted() {
    let master = Server::start();
    let replica = Replica::of(&master);
    let prefix = own_prefix();
    let before = open(patient().url(&master.url()).prefix(&prefix));
    assert_eq!(attempts(&before, &charge("alice"), 1, 3).admitted, 3);
    replica.catch_up(&master);
    let store = open(patient().url(&replica.server().url()).prefix(&prefix));
    fails_as(&store, &charge("alice"), FailureKind::ReadOnly);
    assert_eq!(left(&store, FIVE, "alice"), 2, "a replica can still be read");
    replica.promote();
    assert!(decides(&store, &charge("alice")));
    assert_eq!(attempts(&store, &charge("alice"), 1, 5).admitted, 1);
}

#[test]
fn the_master_that_the_sentinels_chose_is_called() {
    let master = Server::start();
    let replica = Replica::of(&master);
    let sentinel = Sentinel::watch(&master, &replica);
    let builder = patient().deadline(Duration::from_secs(1));
    let store = open(builder.sentinel("main", [sentinel.server().url()]));
    until("the master to be found", || answer(store.peek(&charge("alice"))).ok());
    assert_eq!(attempts(&store, &charge("alice"), 1, 3).admitted, 3);
    replica.catch_up(&master);
    sentinel.fail_over(&master);
    assert!(decides(&store, &charge("alice")), "by the new master, which has counted three");
    assert_eq!(sentinel.master(), replica.server().address().port());
    assert_eq!(attempts(&store, &charge("alice"), 1, 5).admitted, 1);
}

/// Another program writes to the row. That affects one key and no other.
#[test]
fn a_row_of_another_type_is_a_failure_of_one_key() {
    let prefix = own_prefix();
    let store = open(patient().url(&shared().url()).prefix(&prefix));
    for limit in [FIVE, Limit::sliding_log(5, DAY), FIVE.ban(DAY), Limit::concurrent(5)] {
        for spoil in [["RPUSH", "other"], ["SADD", "other"], ["SET", "other"], ["SET", ""]] {
            let charge = Charge::of(limit, key("alice"), 1);
            assert!(decides(&store, &charge), "{limit}");
            let row = rows(shared(), &prefix).pop().expect("one row");
            shared().cli(["DEL", &row]);
            shared().cli([spoil[0], &row, spoil[1]]);
            if spoil == ["SET", ""] && answer(store.take(&charge)).is_ok() {
                // A malformed row must never count as a fresh one.
                shared().cli(["DEL", &row]);
                continue;
            }
            for _ in 0..10 {
                fails_as(&store, &charge, FailureKind::WrongType);
            }
            assert_eq!(store.counts().breaker, BreakerState::Closed, "{limit}, {spoil:?}");
            assert_eq!(attempts(&store, &self::charge("bob"), 1, 1).failed, 0);
            assert!(answer(store.peek(&charge)).is_err(), "{limit}, {spoil:?}");
            shared().cli(["DEL", &row]);
            assert!(decides(&store, &charge), "{limit}, {spoil:?}");
            rows(shared(), &prefix).iter().for_each(|row| {
                shared().cli(["DEL", row]);
            });
        }
    }
}

/// Another program's script does not end.
#[test]
fn a_busy_server_is_a_failure_until_it_is_not() {
    let server = Server::start_with(["--lua-time-limit", "20"]);
    let store = open(patient().url(&server.url()).deadline(Duration::from_secs(10)));
    assert!(decides(&store, &charge("alice")));
    let mut other = Connection::open(server.address()).expect("the server listens");
    let endless = std::thread::spawn(move || other.call(["EVAL", "while true do end", "0"]));
    until("the server to be busy", || {
        matches!(server.cli(["PING"]), Reply::Error(told) if told.starts_with("BUSY")).then_some(())
    });
    fails_as(&store, &charge("alice"), FailureKind::Busy);
    server.cli(["SCRIPT", "KILL"]).expect("it has written nothing");
    assert!(endless.join().expect("no panic").is_ok());
    assert!(decides(&store, &charge("alice")));
    assert_eq!(left(&store, FIVE, "alice"), 3);
}

/// A wrong password, and a user without the necessary rights.
#[test]
fn a_rejected_user_gets_an_error_that_says_so() {
    let server = Server::start();
    server.cli(["ACL", "SETUSER", "limiter", "on", ">secret", "~*", "+@all", "-evalsha", "-eval"]);
    let store = |user: &str| open(patient().url(&format!("redis://{user}@{}/", server.address())));
    for user in ["nobody:secret", "limiter:wrong", "limiter:secret"] {
        fails_as(&store(user), &charge("alice"), FailureKind::Denied);
    }
    server.cli(["ACL", "SETUSER", "limiter", "+eval", "+evalsha"]);
    assert!(decides(&store("limiter:secret"), &charge("alice")));
}
