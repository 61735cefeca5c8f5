//! What connections cost that say nothing, or little.

use std::net::SocketAddr;
use std::time::Duration;

use sluicegate_server::{Policies, Server, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::sleep;

/// The most memory for a connection of a client that has said nothing, in bytes. The test's own end of it is part of it.
const MOST: usize = 10 * 1024;

/// How much the memory of the process changes by itself, in bytes.
const NOISE: usize = 2 << 20;

/// How many connections the system allows to a process that has both ends of each, but at most 3,000.
fn connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("a process");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let soft = line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok());
    (soft.unwrap_or(usize::MAX) / 2 - 100).min(3_000)
}

/// The memory that the process has, in bytes.
fn memory() -> usize {
    super::memory("VmRSS")
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_has_said_nothing_costs_little_and_gives_it_back() {
    let _alone = super::PROCESS.lock().await;
    let rules = "[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"1000/hour\"]";
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, rules).expect("a file");
    let policies = Policies::new().rules(&file).expect("policies");
    let service = Service::builder(policies).build().expect("a service");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).grpc(any).http(any).admin(any).bind().await.expect("ports");
    let addresses = bound.addresses();
    tokio::spawn(bound.run(std::future::pending()));
    let [grpc, http, admin] = [addresses.grpc, addresses.http, addresses.admin].map(Option::unwrap);
    // What is set up once.
    for address in [grpc, http, admin] {
        drop(open(address, 50, b"").await);
    }
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let idle = tasks();
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
        while tasks() > idle {
            sleep(Duration::from_millis(10)).await;
        }
        println!("{what}: {} bytes kept", memory().saturating_sub(before));
    }
    // What one client has given back is there for the next one.
    let before = memory();
    for address in [grpc, http, admin].repeat(3) {
        drop(open(address, count, b"").await);
        while tasks() > idle {
            sleep(Duration::from_millis(10)).await;
        }
    }
    let after = memory();
    // The allocator may keep pieces. State that stays with each connection would be ten times as much.
    let kept = 9 * count * MOST / 10 / 10 + NOISE;
    assert!(after < before + kept, "{before}, then {after}");
}
