//! A user with exactly the rights that the documentation lists.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_lease::pool::Change;
use sluicegate_lease::{Mastership, Role};
use sluicegate_redis::{Failure, FailureKind, Leased, Redis};
use sluicegate_tests::servers::{Cluster, Replica, Sentinel, Server, until};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::attempts;
use super::store::{left, open, patient, runtime, settled};

const DOCUMENTATION: &str = include_str!("../../../../crates/sluicegate-redis/src/lib.rs");

/// The words of the documented command, for rows with another prefix.
fn documented() -> Vec<String> {
    let text = DOCUMENTATION.replace("\n//! ", " ");
    let (_, command) = text.split_once("`ACL SETUSER").expect("it is documented");
    let (command, _) = command.split_once('`').expect("it ends");
    let words = command.split_whitespace().map(|word| match word {
        "~sluicegate:*" => "~test-*",
        word => word,
    });
    ["ACL", "SETUSER"].into_iter().chain(words).map(str::to_owned).collect()
}

/// Creates the user, with the rights that are documented for a purpose.
fn let_in(server: &Server, besides: &[&str]) {
    for right in besides {
        assert!(DOCUMENTATION.contains(right), "{right} is not documented");
    }
    let words = documented();
    server.cli(words.iter().map(String::as_str).chain(besides.iter().copied()));
}

/// Every operation of a store.
fn works(store: &Redis) {
    let plain = Limit::fixed_window(100, DAY).from_first();
    let limits = [
        plain,
        Limit::per_minute(100),
        Limit::per_minute(100).ban(DAY),
        Limit::sliding_log(100, DAY),
        Limit::sliding_window(100, DAY),
        Limit::concurrent(100),
    ];
    for (number, limit) in limits.into_iter().enumerate() {
        let name = format!("key-{number}");
        let charge = Charge::of(limit, key(&name), 2);
        for _ in 0..2 {
            let outcome = answer(store.take(&charge)).expect("a decision");
            assert!(outcome.is_admitted(), "{limit}");
            let debit = charge.debits().next().expect("one limit");
            store.settle(debit, &outcome.receipts().next().expect("one limit"), 0);
        }
        settled(store);
        answer(store.peek(&charge)).expect("a look");
        answer(store.reset(&charge)).expect("the store answers");
        assert_eq!(left(store, limit, &name), 100, "{limit}");
    }
    let leased = Leased::new(store.clone(), 1..=10);
    let charge = Charge::of(plain, key("leased"), 1);
    for _ in 0..20 {
        assert!(answer(leased.take(&charge)).expect("a decision").is_admitted());
    }
    runtime().block_on(leased.flush());
    assert_eq!(leased.counts().passed_on, 0);
    let counts = store.counts();
    assert_eq!((counts.failures, counts.settlements_dropped), (0, 0), "{counts:?}");
}

#[test]
fn a_user_with_the_documented_rights_can_do_everything() {
    let server = Server::start();
    let at = |path: &str| format!("redis://limiter:secret@{}{path}", server.address());
    let_in(&server, &[]);
    works(&open(patient().url(&at("/")).client_name("no-right-to-be-named")));
    let many = open(patient().url(&at("/")));
    let charge = Charge::of(Limit::per_minute(1_000), key("alice"), 1);
    assert_eq!(attempts(&many, &charge, 8, 20).failed, 0, "many together");
    let_in(&server, &["+select"]);
    works(&open(patient().url(&at("/2"))));
    let cluster = Cluster::start(3);
    cluster.masters().iter().for_each(|node| let_in(node, &["+cluster|slots", "+asking"]));
    let urls = cluster.urls();
    let urls = urls.iter().map(|url| url.replace("redis://", "redis://limiter:secret@"));
    works(&open(patient().cluster(urls).deadline(Duration::from_secs(60))));
}

#[test]
fn a_user_with_the_documented_rights_stands_for_a_mastership() {
    let server = Server::start();
    let_in(&server, &["+sadd", "+srem", "+sscan"]);
    let url = format!("redis://limiter:secret@{}/", server.address());
    let redis = open(patient().url(&url));
    let elected = {
        let _entered = runtime().enter();
        redis.mastership("quota", "http://one").stand().expect("a candidate")
    };
    let roles = elected.roles();
    until("a master", || matches!(&*roles.borrow(), Role::Master { .. }).then_some(()));
    let names = || ("db".into(), "a".into());
    let (resource, client) = names();
    let joined = Change::Add { resource, client };
    let (resource, client) = names();
    let left = Change::Remove { resource, client };
    runtime().block_on(elected.record(vec![joined, left])).expect("a record");
}

/// Every server of the service has the user. Rights are not copied to replicas.
#[test]
fn a_user_with_the_documented_rights_follows_the_sentinels_to_a_new_master() {
    let master = Server::start();
    let replica = Replica::of(&master);
    let sentinel = Sentinel::watch(&master, &replica);
    let watched = || {
        let sentinels = [sentinel.server().url()];
        patient().url("redis://limiter:secret@any").sentinel("main", sentinels)
    };
    let charge = Charge::of(Limit::fixed_window(1_000, DAY).from_first(), key("alice"), 1);
    [&master, replica.server()].into_iter().for_each(|server| let_in(server, &[]));
    let error =
        answer(open(watched()).take(&charge)).expect_err("the user may not ask for the role");
    let failure = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    assert_eq!(failure.map(Failure::kind), Some(FailureKind::Denied), "{error}");

    [&master, replica.server()].into_iter().for_each(|server| let_in(server, &["+role"]));
    let store = open(watched());
    works(&store);
    assert!(answer(store.take(&charge)).expect("a decision").is_admitted());
    replica.catch_up(&master);
    sentinel.fail_over(&master);
    until("the new master to decide", || answer(store.take(&charge)).ok());
    // One after another: a breaker that has just closed lets more calls through as calls are answered.
    let tally = attempts(&store, &charge, 1, 200);
    assert_eq!((tally.admitted, tally.failed), (200, 0), "{:?}", store.counts());
    // What the old master had counted before it was copied still counts.
    assert!(left(&store, Limit::fixed_window(1_000, DAY).from_first(), "alice") <= 798);
}
