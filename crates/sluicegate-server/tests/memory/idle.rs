//! What connections cost that say nothing, or little.

use std::net::SocketAddr;
use std::time::Duration;

use sluicegate_server::{Policies, Server, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::memory;

/// The most memory for a connection of a client that has said nothing, in bytes. The test's own end of it is part of it.
const MOST: usize = 10 * 1024;

/// How much the process allocates and keeps for other things meanwhile, in bytes.
const NOISE: usize = 128 << 10;

/// How many connections the system allows to a process that has both ends of each, but at most 3,000.
fn connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("a process");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let soft = line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok());
    (soft.unwrap_or(usize::MAX) / 2 - 100).min(3_000)
}

async fn open(address: SocketAddr, count: usize, said: &[u8]) -> Vec<TcpStream> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let mut client = TcpStream::connect(address).await.expect("a connection");
        client.write_all(said).await.expect("an open connection");
        clients.push(client);
    }
    // Connections are accepted in their order. Then their tasks run.
    let mut last = TcpStream::connect(address).await.expect("a connection");
    last.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("sent");
    last.read_to_end(&mut Vec::new()).await.expect("an answer");
    for _ in 0..100 {
        sleep(Duration::from_millis(2)).await;
    }
    clients
}

/// How much of what was allocated since `before` stays, in bytes. The server learns of the ends of its clients, and frees
/// what they had, a moment after they are gone.
async fn kept(before: usize) -> usize {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let kept = memory().saturating_sub(before);
        if kept < NOISE || Instant::now() > end {
            return kept;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_connection_that_has_said_nothing_costs_little_and_gives_it_back() {
    super::alone(async {
        let rules = "[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"1000/hour\"]";
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("rules.toml");
        std::fs::write(&file, rules).expect("a file");
        let policies = Policies::new().rules(&file).expect("policies");
        let service = Service::builder(policies).build().expect("a service");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let bound =
            Server::new(service).grpc(any).http(any).admin(any).bind().await.expect("ports");
        let addresses = bound.addresses();
        tokio::spawn(bound.run(std::future::pending()));
        let [grpc, http, admin] =
            [addresses.grpc, addresses.http, addresses.admin].map(Option::unwrap);
        // What is set up once.
        for address in [grpc, http, admin] {
            drop(open(address, 50, b"").await);
        }
        let count = connections();
        for (what, address, said) in [
            ("gRPC", grpc, &b""[..]),
            ("HTTP", http, b""),
            ("admin", admin, b""),
            ("gRPC, a part of the preface", grpc, b"PRI * HTTP/2.0\r\n\r\nSM\r\n"),
            ("HTTP, a part of the preface", http, b"P"),
        ] {
            let before = memory();
            let clients = open(address, count, said).await;
            let open = memory();
            println!("{what}: {} bytes a connection", open.saturating_sub(before) / count);
            assert!(open < before + count * MOST + NOISE, "{what}: {before}, then {open}");
            drop(clients);
            let kept = kept(before).await;
            println!("{what}: {kept} bytes kept");
            // 50 bytes that stay with each of 3,000 connections would be more.
            assert!(kept < NOISE, "{what}: {kept} bytes kept");
        }
        // What one client has given back is there for the next one.
        let before = memory();
        for address in [grpc, http, admin].repeat(3) {
            drop(open(address, count, b"").await);
        }
        let kept = kept(before).await;
        println!("{kept} bytes kept in the end");
        // 5 bytes that stay with each connection would be more.
        assert!(kept < NOISE, "{kept} bytes kept");
    });
}
