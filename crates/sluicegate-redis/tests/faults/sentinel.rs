//! Scripted sentinels, and what they report about a master.

use sluicegate_core::ManualClock;
use sluicegate_redis::{FailureKind, Redis};

use crate::fake::{Act, Fake};
use crate::{kind, quick, take, until};

/// A server with a role.
fn server(role: &'static [u8]) -> Fake {
    Fake::new(move |name, _| (name == "ROLE").then(|| Act::Say(role.to_vec())))
}

fn master() -> Fake {
    server(b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")
}

fn replica() -> Fake {
    server(b"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n")
}

/// A sentinel that reports these masters one after the other, and then always the last one.
fn sentinel(masters: &[&Fake]) -> Fake {
    let mut ports: Vec<_> = masters.iter().map(|master| master.port()).rev().collect();
    Fake::new(move |name, _| {
        let port = if ports.len() > 1 && name == "SENTINEL" { ports.pop() } else { None };
        let port = port.or(ports.last().copied()).expect("a master").to_string();
        let words = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
        (name == "SENTINEL").then(|| Act::Say(words.into_bytes()))
    })
}

fn watched(sentinels: &[&Fake]) -> Redis {
    let urls: Vec<_> = sentinels.iter().map(|sentinel| sentinel.url()).collect();
    let builder = Redis::builder().sentinel("main", urls).clock(&ManualClock::new());
    quick(builder).build().expect("good URLs")
}

/// The clock stands still, so a request that waited for the first sentinel would wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_hangs_delays_no_request() {
    let (master, hangs) = (master(), Fake::new(|_, _| Some(Act::Nothing)));
    let store = watched(&[&hangs, &sentinel(&[&master])]);
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_names_a_replica_is_not_believed() {
    let (replica, master) = (replica(), master());
    let store = watched(&[&sentinel(&[&replica, &master])]);
    until(&store, |counts| counts.connections == 1).await;
    take(&store).await.expect("a decision");
    assert_eq!((replica.seen("EVALSHA"), master.seen("EVALSHA")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_became_a_replica_is_left_for_the_new_master() {
    let new = master();
    let old = Fake::new(|name, _| match name {
        "ROLE" => Some(Act::Say(b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n".to_vec())),
        "EVALSHA" => Some(Act::Say(b"-READONLY You can't write.\r\n".to_vec())),
        _ => None,
    });
    let store = watched(&[&sentinel(&[&old, &new])]);
    assert_eq!(kind(take(&store).await), FailureKind::ReadOnly);
    take(&store).await.expect("a decision");
    assert_eq!(new.seen("EVALSHA"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_no_sentinel_knows_is_named() {
    let sentinel = Fake::new(|name, _| (name == "SENTINEL").then(|| Act::Say(b"_\r\n".to_vec())));
    let store = watched(&[&sentinel]);
    let error = take(&store).await.expect_err("no master");
    let source = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(source.contains("`main`"), "{source}");
}
