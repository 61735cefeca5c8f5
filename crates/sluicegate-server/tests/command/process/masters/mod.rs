//! Several servers, of which one divides the capacity, behind a load balancer that knows nothing of that.

mod envoy;
mod users;

use std::time::{Duration, Instant};

use serde_json::Value;
use sluicegate_lease::{Amount, LeaseClient};
use sluicegate_tests::command::Cluster;
use sluicegate_tests::servers::Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use self::users::{CAPACITY, Users};
use super::sluicegate::{PATIENCE, program, serve};

/// Longer than the leases of the file, and what servers add to them.
const LEASE: Duration = Duration::from_secs(11);

async fn start() -> (Server, Cluster) {
    let redis = Server::start();
    let cluster = Cluster::start(program(), &redis.url(), (CAPACITY, 100)).await;
    (redis, cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_follow_a_killed_master_and_together_grant_no_more_than_there_is() {
    let (_redis, mut cluster) = start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let killed = cluster.master();
    cluster.servers[killed].signal("KILL");
    cluster.servers[killed].ended();
    let since = Instant::now();
    cluster.another_master(killed).await;
    eprintln!("a master again after {:?}", since.elapsed());
    // What the killed one had granted ends in this time.
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_stops_gives_the_mastership_up_at_once() {
    let (_redis, cluster) = start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let stopped = cluster.master();
    cluster.servers[stopped].signal("TERM");
    let since = Instant::now();
    cluster.steps_down(stopped).await;
    cluster.another_master(stopped).await;
    eprintln!("a master again after {:?}", since.elapsed());
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_stands_still_grants_nothing_when_it_goes_on() {
    let (_redis, cluster) = start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let stopped = cluster.master();
    cluster.servers[stopped].signal("STOP");
    let since = Instant::now();
    cluster.another_master(stopped).await;
    eprintln!("a master again after {:?}", since.elapsed());
    // The stopped one has calls and reports from before, and from the load balancer, which still sends some to it.
    users.use_it_for(LEASE).await;
    cluster.servers[stopped].signal("CONT");
    cluster.steps_down(stopped).await;
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_divides_while_the_store_is_away_and_one_server_does_afterwards() {
    let (redis, cluster) = start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let before = cluster.master();
    redis.pause();
    cluster.steps_down(before).await;
    // Leases end, and nobody renews them.
    users.nobody_has_anything().await;
    redis.resume();
    let since = Instant::now();
    cluster.any_master().await;
    eprintln!("a master again after {:?}", since.elapsed());
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_cannot_be_reached_is_told_once_and_once_when_that_ends() {
    let redis = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("capacity.toml");
    std::fs::write(&file, "[[capacity]]\nname = \"db\"\nlimit = \"10/second\"\n").expect("a file");
    let (file, url) = (file.to_str().expect("text"), redis.url());
    let start = |own: &str, more: &[&str]| {
        let several: &[&str] = &["--masters", &url, "--advertise", own, "--capacity", file];
        serve(&[several, more].concat())
    };
    // Nobody listens there.
    let master = start("127.0.0.1:1", &[]);
    master.says("this server divides the capacity");
    let other = start("127.0.0.1:2", &["--admin", "127.0.0.1:0"]);
    other.says("another server divides the capacity");
    let metrics = async || {
        let mut admin = TcpStream::connect(other.port("admin")).await.expect("a connection");
        let request = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
        admin.write_all(request).await.expect("a request");
        let mut answer = String::new();
        admin.read_to_string(&mut answer).await.expect("an answer");
        answer
    };
    assert!(metrics().await.contains("sluicegate_master_away 0"), "{}", metrics().await);
    let connect = |_| LeaseClient::connect(&format!("http://{}", other.grpc)).expect("an address");
    let clients: Vec<_> = (0..5).map(connect).collect();
    let lease = |client: &LeaseClient| client.resource("db").wants(Amount::units(1)).lease();
    let _leases: Vec<_> = clients.iter().map(|client| lease(client).expect("a lease")).collect();
    other.says("calls are not passed on: the master at http://127.0.0.1:1 cannot be reached");
    let have_failed = async {
        while clients.iter().any(|client| client.problem().is_none()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, have_failed).await.expect("calls that fail");
    assert!(metrics().await.contains("sluicegate_master_away 1"), "{}", metrics().await);
    drop(master);
    other.says("the server that could not be reached is not the master any more");
    other.says("this server divides the capacity");
    assert!(metrics().await.contains("sluicegate_master_away 0"), "{}", metrics().await);
    // A busy machine has warnings of its own, such as of a server of Redis that is slow.
    let warned = |line: &&Value| {
        line["level"] == "WARN" && line.to_string().contains("calls are not passed on")
    };
    assert_eq!(other.lines().iter().filter(warned).count(), 1, "{:?}", other.lines());
}
