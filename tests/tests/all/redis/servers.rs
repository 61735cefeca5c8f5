//! The servers that the other tests use.

use std::path::Path;
use std::process::Command;

use sluicegate_tests::servers::{Cluster, Replica, Reply, Sentinel, Server, until};

fn runs(id: &str) -> bool {
    let status = Command::new("sh").args(["-c", "kill -0 \"$0\" 2>/dev/null", id]).status();
    status.expect("a shell").success()
}

fn process_of(server: &Server) -> String {
    let told = server.cli(["INFO", "server"]).text();
    let line = told.lines().find_map(|line| line.strip_prefix("process_id:"));
    line.expect("every server knows").to_owned()
}

fn directory_of(server: &Server) -> String {
    server.cli(["CONFIG", "GET", "dir"]).list().swap_remove(1).text()
}

#[test]
fn a_server_is_gone_when_the_test_panics() {
    let (process, directory) = std::thread::spawn(|| {
        let server = Server::start();
        let both = (process_of(&server), directory_of(&server));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _ = server;
            std::panic::resume_unwind(Box::new("as a test does"));
        }));
        assert!(panic.is_err());
        both
    })
    .join()
    .expect("the panic was caught");
    assert!(!runs(&process));
    assert!(!Path::new(&directory).exists());
}

#[test]
fn servers_of_one_test_have_ports_and_memories_of_their_own() {
    let (one, other) = (Server::start(), Server::start());
    assert_ne!(one.address(), other.address());
    one.cli(["SET", "key", "value"]);
    assert_eq!(other.cli(["GET", "key"]), Reply::Nothing);
}

#[test]
fn a_server_that_is_restarted_has_its_port_and_an_empty_memory() {
    let server = Server::start();
    let (address, process) = (server.address(), process_of(&server));
    server.cli(["SET", "key", "value"]);
    server.kill();
    assert!(!runs(&process));
    assert!(server.try_cli(["PING"]).is_err());
    server.restart();
    assert_eq!(server.address(), address);
    assert_eq!(server.cli(["GET", "key"]), Reply::Nothing);
}

#[test]
fn a_stopped_server_continues_where_it_was() {
    let server = Server::start();
    server.cli(["SET", "key", "value"]);
    server.pause();
    server.resume();
    assert_eq!(server.cli(["GET", "key"]).text(), "value");
    // It ends with the test even while it is stopped.
    server.pause();
}

#[test]
fn a_slot_moves_with_its_keys() {
    let cluster = Cluster::start(3);
    let slot = cluster.slot("{a}");
    let (from, to) = (cluster.owner(slot), cluster.masters());
    let to = to.iter().find(|server| server.address() != from.address()).expect("three of them");
    for number in 0..250 {
        from.cli(["SET", &format!("{{a}}{number}"), "value"]);
    }
    cluster.move_slot(slot, to);
    assert_eq!(cluster.owner(slot).address(), to.address());
    assert_eq!(to.cli(["GET", "{a}249"]).text(), "value");
    assert!(matches!(from.cli(["GET", "{a}0"]), Reply::Error(told) if told.starts_with("MOVED")));
}

#[test]
fn a_replica_has_its_masters_data_and_can_take_its_place() {
    let master = Server::start();
    let replica = Replica::of(&master);
    master.cli(["SET", "key", "value"]);
    replica.catch_up(&master);
    assert_eq!(replica.server().cli(["GET", "key"]).text(), "value");
    let refused = replica.server().cli(["SET", "key", "other"]);
    assert!(matches!(refused, Reply::Error(told) if told.starts_with("READONLY")));
    replica.promote();
    replica.server().cli(["SET", "key", "other"]).expect("a master");
}

#[test]
fn a_sentinel_makes_the_replica_the_master() {
    let master = Server::start();
    let replica = Replica::of(&master);
    let sentinel = Sentinel::watch(&master, &replica);
    assert_eq!(sentinel.master(), master.address().port());
    sentinel.fail_over(&master);
    let heir = replica.server().address().port();
    until("the failover", || (sentinel.master() == heir).then_some(()));
    until("the heir", || {
        matches!(replica.server().cli(["SET", "key", "value"]), Reply::Line(_)).then_some(())
    });
}
