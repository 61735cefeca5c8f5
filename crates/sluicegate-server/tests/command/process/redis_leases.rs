//! Servers that lease what they count from Redis.

use std::process::Command;

use sluicegate_tests::certificates::Authority;
use sluicegate_tests::servers;

use super::client::{Client, Sent};
use super::sluicegate::{FILE, Sluicegate, serve_with};

/// The limit of a year, so that no window ends during a test.
const LIMIT: u64 = 1_000;

/// The most that a server takes out at once.
const LEASE: u64 = 100;

fn file(limit: u64) -> String {
    FILE.replace("4000000000", &limit.to_string())
}

/// Redis answers within a deadline that no busy machine exceeds.
fn started(redis: &servers::Server, more: &[&str]) -> Sluicegate {
    let url = redis.url();
    let options = ["--redis", &url, "--deadline-ms", "20000"];
    serve_with(&file(LIMIT), &[&options, more].concat())
}

/// Sends this many requests, each in turn by one of the clients. Returns how many were admitted.
async fn admitted(clients: &mut [Client], requests: usize) -> u64 {
    let mut admitted = 0;
    for request in 0..requests {
        let at = request % clients.len();
        match clients[at].send().await {
            Sent::Answered => admitted += 1,
            Sent::Refused => {}
            other => panic!("{other:?}"),
        }
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_lease_admit_one_limit_together() {
    let redis = servers::Server::start();
    let lease = ["--redis-lease=100", "--admin", "127.0.0.1:0"];
    let mut servers = [started(&redis, &lease), started(&redis, &lease)];
    let mut clients = Vec::new();
    for server in &servers {
        clients.extend(Client::all(server.http, server.grpc).await);
    }
    let by_both = admitted(&mut clients, 1_500).await;
    assert!(by_both <= LIMIT, "{by_both}");
    assert!(by_both >= LIMIT - 2 * LEASE, "{by_both}");
    for server in &servers {
        let said = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
            .args(["top", "--once", "--address", &server.port("admin").to_string()])
            .env_remove("SLUICEGATE_ADMIN_TOKEN")
            .output()
            .expect("the command");
        let text = String::from_utf8(said.stdout).expect("text");
        assert!(text.contains("store leases"), "{text}");
        assert!(text.contains("decided without Redis"), "{text}");
    }
    // Each gives back what it has in hand, so nothing is lost.
    for server in &mut servers {
        server.signal("TERM");
        assert_eq!(server.ended().code(), Some(0));
    }
    let plain = started(&redis, &[]);
    let mut client = [Client::grpc(plain.grpc).await];
    let rest = admitted(&mut client, (LIMIT - by_both) as usize + 5).await;
    assert_eq!(by_both + rest, LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_has_leased_is_lost_until_the_window_ends() {
    let redis = servers::Server::start();
    let killed = started(&redis, &["--redis-lease=100"]);
    let mut client = [Client::grpc(killed.grpc).await];
    let before = admitted(&mut client, 300).await;
    assert_eq!(before, 300);
    drop(killed);
    let next = started(&redis, &["--redis-lease=100"]);
    let mut client = [Client::grpc(next.grpc).await];
    let after = admitted(&mut client, 1_000).await;
    let total = before + after;
    // A server has two leases at most.
    assert!((LIMIT - 2 * LEASE..=LIMIT).contains(&total), "{total}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_limit_counts_what_was_spent_from_leases_of_the_old_one() {
    let redis = servers::Server::start();
    let server = started(&redis, &["--redis-lease=100"]);
    let mut client = [Client::grpc(server.grpc).await];
    assert_eq!(admitted(&mut client, 200).await, 200);
    std::fs::write(&server.file, file(300)).expect("a file");
    server.signal("HUP");
    server.says("files read again");
    assert_eq!(admitted(&mut client, 400).await, 100);
}

/// A client of a cluster that knows the names of rows can compute keys of one slot.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_secret_the_rows_in_redis_are_named_by_digests_that_all_servers_share() {
    let redis = servers::Server::start();
    let names = || {
        let rows = redis.cli(["KEYS", "*"]).list();
        rows.into_iter().map(servers::Reply::text).collect::<Vec<_>>()
    };
    let secret = "--redis-key-secret=of sixteen bytes and more";
    let plain = started(&redis, &[]);
    let mut client = [Client::grpc(plain.grpc).await];
    assert_eq!(admitted(&mut client, 1).await, 1);
    let legible = names();
    assert!(legible.len() == 1 && legible[0].contains("user"), "{legible:?}");
    let mut spent = 0;
    for more in [
        &[secret][..],
        &[secret, "--redis-lease=2"],
        &["--redis-key-secret=of sixteen bytes and more\n"],
    ] {
        let server = started(&redis, more);
        let mut client = [Client::grpc(server.grpc).await];
        spent += admitted(&mut client, 3).await;
        let hidden: Vec<_> = names().into_iter().filter(|name| !legible.contains(name)).collect();
        assert!(hidden.len() == 1 && !hidden[0].contains("user"), "{hidden:?}");
    }
    assert_eq!(spent, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_counts_in_a_cluster_behind_sentinels_and_over_tls() {
    let seconds = "--deadline-ms=20000";
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();

    let cluster = servers::Cluster::start(3);
    let nodes = cluster.urls().join(",");
    let in_a_cluster = own(&["--redis", &nodes, "--redis-cluster"]);

    let master = servers::Server::start();
    let replica = servers::Replica::of(&master);
    let sentinel = servers::Sentinel::watch(&master, &replica);
    let (named, sentinels) = ("redis://main", sentinel.server().url());
    let behind_sentinels = own(&["--redis", named, "--redis-sentinels", &sentinels]);

    let authority = Authority::new("an authority");
    let (certificate, key) = authority.sign("localhost");
    let encrypted = servers::Server::tls(&certificate, &key, Some(authority.pem()));
    let files = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = files.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.to_str().expect("a path").to_owned()
    };
    let (pem, own_key) = authority.sign("a client");
    let over_tls = own(&[
        "--redis",
        &encrypted.tls_url(),
        "--redis-authorities",
        &write("authority.pem", authority.pem()),
        "--redis-certificate",
        &write("certificate.pem", &pem),
        "--redis-key",
        &write("key.pem", &own_key),
    ]);

    for options in [in_a_cluster, behind_sentinels, over_tls] {
        let options: Vec<_> = options.iter().map(String::as_str).chain([seconds]).collect();
        let count = async |more: &[&str], requests| {
            let server = serve_with(&file(10), &[&*options, more].concat());
            admitted(&mut [Client::grpc(server.grpc).await], requests).await
        };
        assert_eq!(count(&[], 6).await, 6, "{options:?}");
        assert_eq!(count(&[], 6).await, 4, "{options:?}");
        // Rows of another name are other counts.
        assert_eq!(count(&["--redis-prefix=other:"], 12).await, 10, "{options:?}");
    }
}
