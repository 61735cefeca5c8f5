//! A real etcd: which of several servers of leases is the master, and limits that it keeps.

mod rows;
pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_lease::etcd::{Etcd, EtcdMastership};
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Mastership, Role};
use sluicegate_tests::certificates::Authority;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout};

use crate::etcd::server::Server;

/// The default length of a lease.
/// Long enough for a busy machine, on which a master must not lose it.
const LEASE: Duration = Duration::from_secs(6);

fn stand(server: &Server, address: &str) -> EtcdMastership {
    let etcd = Etcd::new([server.address()]).expect("an address");
    let candidacy = etcd.mastership("quota", address).lease(LEASE);
    let candidacy = candidacy.longest_lease(Duration::from_secs(1));
    candidacy.stand().expect("a candidate")
}

/// Elects masters until one of them knows all clients. Returns their names.
async fn until_whole(server: &Server) -> Vec<String> {
    let elect = async {
        loop {
            if let (_, Some(known)) = until_master(&stand(server, "http://whole")).await {
                return known.into_iter().map(String::from).collect();
            }
        }
    };
    timeout(Duration::from_secs(60), elect).await.expect("a list that is whole")
}

/// Waits for a role that `found` accepts.
async fn until<T>(what: &str, elected: &EtcdMastership, found: impl Fn(&Role) -> Option<T>) -> T {
    let mut roles = elected.roles();
    let found = async {
        loop {
            let now = found(&roles.borrow_and_update());
            if let Some(now) = now {
                return now;
            }
            roles.changed().await.expect("a candidate");
        }
    };
    timeout(Duration::from_secs(60), found).await.unwrap_or_else(|_| panic!("no {what}"))
}

/// The fence of the master, and the names of the clients that it knows.
async fn until_master(elected: &EtcdMastership) -> (u32, Option<Vec<Box<str>>>) {
    until("master", elected, |role| match role {
        Role::Master { fence, known, .. } => Some((*fence, known.as_ref().map(names))),
        Role::Other { .. } => None,
    })
    .await
}

fn names(known: &Arc<[LeaseHolder]>) -> Vec<Box<str>> {
    known.iter().map(|known| known.client.clone()).collect()
}

async fn until_other(elected: &EtcdMastership, address: &str) {
    until("other master", elected, |role| match role {
        Role::Other { master: Some(master) } => (&**master == address).then_some(()),
        _ => None,
    })
    .await;
}

async fn until_nobody(elected: &EtcdMastership) {
    until("end", elected, |role| (*role == Role::Other { master: None }).then_some(())).await;
}

fn joined(client: &str) -> Change {
    Change::Add { resource: "db".into(), client: client.into() }
}

fn left(client: &str) -> Change {
    Change::Remove { resource: "db".into(), client: client.into() }
}

async fn record(elected: &EtcdMastership, changes: Vec<Change>) -> Result<(), String> {
    elected.record(changes).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn one_of_three_is_the_master_and_stays_it() {
    let server = Server::start();
    let one = stand(&server, "http://one");
    let (first, known) = until_master(&one).await;
    // There was nobody before, as far as anyone knows.
    assert_eq!((first, known), (1, None));
    let others = [stand(&server, "http://two"), stand(&server, "http://three")];
    for other in &others {
        until_other(other, "http://one").await;
    }
    let ends = |role: &Role| match role {
        Role::Master { fence, until, .. } => Some((*fence, until.expect("a moment"))),
        Role::Other { .. } => panic!("it was deposed"),
    };
    let (_, end) = ends(&one.roles().borrow()).expect("a master");
    // For longer than a lease.
    until("longer mastership", &one, |role| {
        ends(role).filter(|(fence, until)| *fence == 1 && *until > end + LEASE)
    })
    .await;
    for other in &others {
        assert_eq!(*other.roles().borrow(), Role::Other { master: Some("http://one".into()) });
    }
}

#[tokio::test]
async fn a_master_that_resigns_is_followed_at_once_by_one_that_knows_the_clients() {
    let server = Server::start();
    assert_eq!(until_whole(&server).await, [""; 0]);
    let one = stand(&server, "http://one");
    let (first, _) = until_master(&one).await;
    let two = stand(&server, "http://two");
    until_other(&two, "http://one").await;
    record(&one, vec![joined("a"), joined("b"), joined("c"), left("c")]).await.expect("a record");
    record(&one, vec![left("b"), left("d"), joined("c"), joined("e/f")]).await.expect("a record");
    // More than etcd takes in one transaction.
    let many = (0..1_000).map(|at| format!("many-{at:04}"));
    record(&one, many.clone().map(|name| joined(&name)).collect()).await.expect("a record");
    let began = Instant::now();
    drop(one);
    let (second, known) = until_master(&two).await;
    assert!(began.elapsed() < LEASE, "{:?}", began.elapsed());
    assert_eq!(second, first + 1);
    let named = ["a", "c", "e/f"].map(str::to_owned).into_iter();
    let expected: Vec<Box<str>> = named.chain(many).map(Into::into).collect();
    assert_eq!(known, Some(expected));
}

#[test]
fn a_master_that_is_killed_is_followed_after_its_lease() {
    let server = Server::start();
    // A process of its own, which is killed.
    let (process, test) = (Runtime::new().expect("a runtime"), Runtime::new().expect("a runtime"));
    let one = process.block_on(async { stand(&server, "http://one") });
    let (first, _) = test.block_on(until_master(&one));
    let two = test.block_on(async { stand(&server, "http://two") });
    test.block_on(until_other(&two, "http://one"));
    process.shutdown_background();
    let began = Instant::now();
    let (second, _) = test.block_on(until_master(&two));
    let took = began.elapsed();
    println!("followed after {took:?}");
    assert!(second > first);
    let Role::Master { until: Some(ended), .. } = *one.roles().borrow() else {
        panic!("it never heard of its end");
    };
    assert!(ended < Instant::now(), "two masters at a time");
    assert!(took < LEASE * 5, "{took:?}");
    // What it writes now does not count.
    let late = test.block_on(record(&one, vec![joined("late")]));
    assert!(late.is_err(), "{late:?}");
    assert_eq!(test.block_on(record(&two, vec![joined("a")])), Ok(()));
    drop(two);
    assert_eq!(test.block_on(until_whole(&server)), ["a"]);
}

#[tokio::test]
async fn etcd_refuses_the_record_of_a_master_that_does_not_know_yet_that_it_is_deposed() {
    let mut server = Server::start();
    let etcd = Etcd::new([server.address()]).expect("an address");
    // It calls every 15 seconds, so it learns of its end late.
    let candidacy = etcd.mastership("quota", "http://one").lease(Duration::from_secs(60));
    let one = candidacy.stand().expect("a candidate");
    until_master(&one).await;
    record(&one, vec![joined("a")]).await.expect("a record");
    server.kill();
    server.lose_everything();
    server.start_again();
    let two = stand(&server, "http://two");
    assert_eq!(until_master(&two).await.1, None);
    let mut refused = record(&one, vec![joined("late")]).await;
    while refused.as_ref().is_err_and(|error| !error.contains("the master")) {
        // Its connection is that to the etcd before.
        tokio::time::sleep(Duration::from_millis(20)).await;
        refused = record(&one, vec![joined("late")]).await;
    }
    assert_eq!(refused, Err("another server is the master".to_owned()));
    record(&two, vec![joined("b")]).await.expect("a record");
    drop(two);
    // Clients of the first one may still hold leases.
    let three = stand(&server, "http://three");
    assert_eq!(until_master(&three).await.1, None);
    drop(three);
    assert_eq!(until_whole(&server).await, ["b"]);
}

#[tokio::test]
async fn an_etcd_that_has_lost_everything_gets_a_larger_fence_and_no_clients() {
    let mut server = Server::start();
    let one = stand(&server, "http://one");
    let (first, _) = until_master(&one).await;
    record(&one, vec![joined("a")]).await.expect("a record");
    server.kill();
    server.lose_everything();
    server.start_again();
    let (second, known) = until("new fence", &one, |role| match role {
        Role::Master { fence, known, .. } if *fence > first => Some((*fence, known.clone())),
        _ => None,
    })
    .await;
    assert_eq!((second, known), (first + 1, None));
}

#[tokio::test]
async fn while_etcd_is_away_the_master_stays_until_its_time_is_over() {
    let mut server = Server::start();
    until_whole(&server).await;
    let one = stand(&server, "http://one");
    let (first, _) = until_master(&one).await;
    let two = stand(&server, "http://two");
    until_other(&two, "http://one").await;
    record(&one, vec![joined("a")]).await.expect("a record");
    server.kill();
    let Role::Master { until: Some(end), .. } = *one.roles().borrow() else {
        panic!("it is still the master");
    };
    assert!(record(&one, vec![joined("b")]).await.is_err());
    until_nobody(&one).await;
    assert!(Instant::now() >= end);
    server.start_again();
    let began = Instant::now();
    let (next, known) = tokio::select! {
        next = until_master(&one) => next,
        next = until_master(&two) => next,
    };
    // The old lease begins anew when etcd starts, and the last master ends it.
    assert!(began.elapsed() < LEASE, "{:?}", began.elapsed());
    assert!(next > first);
    assert_eq!(known, Some(vec!["a".into()]));
}

#[tokio::test]
async fn a_short_absence_of_etcd_changes_nothing() {
    let mut server = Server::start();
    let etcd = Etcd::new([server.address()]).expect("an address");
    let candidacy = etcd.mastership("quota", "http://one").lease(Duration::from_secs(30));
    let one = candidacy.stand().expect("a candidate");
    let (first, _) = until_master(&one).await;
    let end = |role: &Role| match role {
        Role::Master { fence, until, .. } if *fence == first => *until,
        role => panic!("{role:?}"),
    };
    let before = end(&one.roles().borrow()).expect("a moment");
    server.kill();
    server.start_again();
    until("longer mastership", &one, |role| end(role).filter(|until| *until > before)).await;
}

#[tokio::test]
async fn the_next_member_is_asked_if_one_does_not_answer() {
    let server = Server::start();
    let etcd = Etcd::new(["http://127.0.0.1:1", &server.address()]).expect("addresses");
    let one = etcd.mastership("quota", "http://one").stand().expect("a candidate");
    until_master(&one).await;
}

#[tokio::test]
async fn a_master_is_elected_over_tls_by_those_that_trust_etcd_and_show_a_certificate() {
    let (authority, stranger) = (Authority::new("etcd"), Authority::new("stranger"));
    let server = Server::start_with_tls(&authority);
    let stand = |trusted: &Authority, signer: &Authority, address: &str| {
        let (certificate, key) = signer.sign("sluicegate");
        let etcd = Etcd::new([server.address()]).expect("an address");
        let etcd = etcd.certificates(
            Some(trusted.pem().as_bytes()),
            Some((certificate.as_bytes(), key.as_bytes())),
        );
        etcd.expect("certificates").mastership("quota", address).stand().expect("a candidate")
    };
    // Neither of them ever hears who is the master.
    let strangers = [
        stand(&stranger, &authority, "http://trusts-another"),
        stand(&authority, &stranger, "http://is-another"),
    ];
    let one = stand(&authority, &authority, "http://one");
    until_master(&one).await;
    record(&one, vec![joined("a")]).await.expect("a record");
    until_other(&stand(&authority, &authority, "http://two"), "http://one").await;
    for stranger in strangers {
        assert_eq!(*stranger.roles().borrow(), Role::Other { master: None });
    }
}

#[test]
fn certificates_that_cannot_be_used_are_an_error() {
    let (certificate, _) = Authority::new("etcd").sign("sluicegate");
    let error = |member: &str, authorities: &str, key: &str| {
        let etcd = Etcd::new([member]).expect("an address");
        let own = (certificate.as_bytes(), key.as_bytes());
        let certified = etcd.certificates(Some(authorities.as_bytes()), Some(own));
        certified.expect_err("an error").to_string()
    };
    let authorities = Authority::new("etcd");
    let (plain, tls) = ("http://127.0.0.1:2379", "https://127.0.0.1:2379");
    let said = error(plain, authorities.pem(), "");
    assert!(said.contains("has no TLS"), "{said}");
    let said = error(tls, "none", "");
    assert!(said.contains("no certificate among the authorities"), "{said}");
    let said = error(tls, authorities.pem(), "none");
    assert!(said.contains("cannot be used"), "{said}");
}
