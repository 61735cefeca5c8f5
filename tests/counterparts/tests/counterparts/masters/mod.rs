//! Three servers of which one divides a capacity among real Envoys and clients of leases, elected in a real etcd or Redis.

mod users;

use std::time::{Duration, Instant};

use sluicegate_counterparts::sluicegate;
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::command::{Cluster, DESCRIPTORS, Sluicegate};
use sluicegate_tests::servers::{self, Directory};
use tokio::time::sleep;

use self::users::{BURST, CAPACITY, Users};
use crate::etcd::server::Server as Etcd;

/// Where the servers elect the master.
enum Store {
    Redis(servers::Server),
    Etcd(Etcd),
}

impl Store {
    fn url(&self) -> String {
        match self {
            Self::Redis(server) => server.url(),
            Self::Etcd(server) => server.address().replace("http://", "etcd://"),
        }
    }

    fn go_away(&mut self) {
        match self {
            // It would have forgotten everything after a kill.
            Self::Redis(server) => server.pause(),
            Self::Etcd(server) => server.kill(),
        }
    }

    fn come_back(&mut self) {
        match self {
            Self::Redis(server) => server.resume(),
            Self::Etcd(server) => server.start_again(),
        }
    }
}

/// How long it takes at most until there is a master again.
const ELECTION: Duration = Duration::from_secs(3);
/// An election is about so many steps of processes one after the other, each of which a busy machine delays.
const STEPS: u32 = 20;

/// Waits until there is a master that is not this one.
async fn followed(cluster: &Cluster, users: &Users, last: usize) {
    let (began, _) = (Instant::now(), users.longest_delay());
    cluster.another_master(last).await;
    let (took, delay) = (began.elapsed(), users.longest_delay());
    eprintln!("a master again after {took:.2?}, while the machine was late by {delay:.0?}");
    assert!(took < ELECTION + STEPS * delay, "{took:?}, while the machine was late by {delay:?}");
}

async fn mishaps_of_a_master_and_of(mut store: Store) {
    let mut cluster = Cluster::start(sluicegate(), &store.url(), (CAPACITY, BURST)).await;
    let users = Users::start(cluster.balancer.address).await;
    users.use_most_of_it("at first").await;

    // Dropped, it is killed.
    drop(cluster.servers.remove(cluster.master()));
    followed(&cluster, &users, usize::MAX).await;
    users.use_most_of_it("after a kill").await;

    let stopped = cluster.master();
    cluster.servers[stopped].signal("STOP");
    followed(&cluster, &users, stopped).await;
    // Longer than the mastership, and so long that the load balancer has given it streams that it has not answered.
    sleep(Duration::from_secs(3)).await;
    cluster.servers[stopped].signal("CONT");
    cluster.steps_down(stopped).await;
    users.use_most_of_it("after a server stood still").await;

    let before = cluster.master();
    store.go_away();
    cluster.steps_down(before).await;
    // Users go on with what they have.
    sleep(Duration::from_secs(2)).await;
    store.come_back();
    followed(&cluster, &users, usize::MAX).await;
    users.use_most_of_it("after the store was away").await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_servers_with_etcd_never_have_more_than_there_is() {
    mishaps_of_a_master_and_of(Store::Etcd(Etcd::start())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_servers_with_redis_never_have_more_than_there_is() {
    mishaps_of_a_master_and_of(Store::Redis(servers::Server::start())).await;
}

#[test]
fn a_server_is_elected_in_an_etcd_that_asks_for_its_certificate() {
    let authority = Authority::new("all");
    let (certificate, key) = authority.sign("localhost");
    let etcd = Etcd::start_with_tls(&authority);
    let directory = Directory::make();
    let write = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.to_str().expect("text").to_owned()
    };
    let server = Sluicegate::start(
        sluicegate(),
        DESCRIPTORS,
        &[
            "--capacity",
            &write("capacity.toml", "[[capacity]]\nname = \"db\"\nlimit = \"100/second\"\n"),
            "--masters",
            &etcd.address().replace("https://", "etcds://"),
            "--masters-authorities",
            &write("authorities.pem", authority.pem()),
            "--tls-certificate",
            &write("server.pem", &certificate),
            "--tls-key",
            &write("server.key", &key),
            "--advertise",
            "localhost:8081",
        ],
    );
    server.says("this server divides the capacity");
}
