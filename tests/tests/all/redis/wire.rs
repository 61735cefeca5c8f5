//! What is sent over the wire.

use std::env;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_tests::servers::{Connection, Reply, Server};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::{Load, attempts};
use super::store::{on, open, own_prefix, patient, shared};
use super::worker::Worker;

/// What clients with `prefix` send to the server while `run` runs, and what their scripts call.
fn watched(server: &Server, prefix: &str, run: impl FnOnce()) -> (Vec<String>, Vec<String>) {
    let mut monitor = Connection::open(server.address()).expect("the server listens");
    monitor.call(["MONITOR"]).expect("the server answers");
    run();
    server.cli(["ECHO", prefix]);
    let (mut sent, mut called, mut ours) = (Vec::new(), Vec::new(), false);
    loop {
        let line = monitor.read().expect("the server goes on").text();
        let (from, words) = line.split_once("] ").expect("a client and a command");
        if words.starts_with("\"ECHO\"") && words.contains(prefix) {
            return (sent, called);
        }
        // The calls of a script come after it.
        if !from.ends_with("lua") {
            ours = words.contains(prefix);
            if ours {
                sent.push(words.to_owned());
            }
        } else if ours {
            called.push(words.to_owned());
        }
    }
}

/// Two nodes whose clocks are an hour apart agree, because no client time is sent: the bytes are the same at any
/// time. The server's own clock decides.
#[test]
fn client_clock_in_the_script() {
    let prefix = own_prefix();
    let nodes = [(); 2].map(|()| open(patient().url(&shared().url()).prefix(&prefix)));
    let mut charge = Charge::of(Limit::per_day(10), key("alice"), 1);
    for limits in 1..3 {
        for store in &nodes {
            attempts(store, &charge, 1, 1);
        }
        let (sent, called) = watched(shared(), &prefix, || {
            for store in nodes.iter().cycle().take(6) {
                assert_eq!(attempts(store, &charge, 1, 1).failed, 0);
            }
        });
        assert_eq!(sent.len(), 6);
        assert!(sent.iter().all(|words| *words == sent[0]), "{sent:#?}");
        let asked = called.iter().filter(|words| words.as_str() == "\"TIME\"").count();
        assert_eq!(asked, 6, "{limits} limits: {called:#?}");
        charge.add(Limit::sliding_log(100, DAY), key("alice"), 1).expect("two limits");
    }
}

/// Processes with the machine's clock send the same at any time. Together they admit what the server counts.
#[test]
fn two_processes_send_nothing_of_time() {
    let prefix = own_prefix();
    let mut processes =
        [(); 2].map(|()| Worker::start("wire::one_of_two_processes", "SLUICEGATE_TWO", &prefix));
    processes.iter_mut().for_each(Worker::is_ready);
    let mut admitted = Vec::new();
    let (sent, _) = watched(shared(), &prefix, || {
        for mut process in processes {
            process.begin();
            admitted.extend(process.admitted());
        }
    });
    assert_eq!(admitted, ["6", "4"]);
    assert_eq!(sent.len(), 12);
    assert!(sent.iter().all(|words| *words == sent[0]), "{sent:#?}");
}

/// The part of those processes. Does nothing in an ordinary test run.
#[test]
fn one_of_two_processes() {
    let (Ok(url), Ok(prefix)) = (env::var("SLUICEGATE_TWO"), env::var("SLUICEGATE_PREFIX")) else {
        return;
    };
    let store = open(patient().url(&url).prefix(&prefix));
    attempts(&store, &Charge::of(Limit::per_second(1), key("to get connected"), 1), 1, 1);
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the parent process runs");
    let tally = attempts(&store, &Charge::of(Limit::per_day(10).burst(10), key("alice"), 1), 1, 6);
    println!("\nadmitted {}", tally.admitted);
}

/// And on one connection, however many requests are under way.
#[test]
fn a_decision_is_one_script_whatever_number_of_limits_it_carries() {
    let server = Server::start();
    let store = on(&server);
    let mut charge = Charge::new();
    for count in 1..=8 {
        charge.add(Limit::per_day(count * 1_000), key("alice"), 1).expect("eight limits");
        attempts(&store, &charge, 1, 1);
        let before = evaluated(&server);
        assert_eq!(attempts(&store, &charge, 8, 10).admitted, 80);
        let scripts = evaluated(&server) - before;
        match count {
            // Calls of one limit may be sent together.
            1 => assert!((10..=80).contains(&scripts), "{scripts} scripts"),
            _ => assert_eq!(scripts, 80, "{count} limits"),
        }
    }
    assert_eq!(store.counts().connections, 1);
}

/// How many scripts the server has run.
fn evaluated(server: &Server) -> u64 {
    let told = server.cli(["INFO", "commandstats"]).text();
    let calls = told.lines().filter_map(|line| {
        let (command, figures) = line.split_once(":calls=")?;
        let calls = figures.split(',').next()?.parse::<u64>().ok()?;
        command.starts_with("cmdstat_eval").then_some(calls)
    });
    calls.sum()
}

/// The server forgets the scripts, they are sent again, and no request fails.
#[test]
fn the_count_is_exact_while_scripts_are_forgotten() {
    let server = Server::start();
    let store = on(&server);
    let limit = Limit::fixed_window(3_000, DAY).from_first();
    let charge = Charge::of(limit, key("alice"), 1);
    let load = Load::start(&store, &charge, 8);
    for _ in 0..40 {
        load.until_answered(40);
        assert_eq!(server.cli(["SCRIPT", "FLUSH"]), Reply::Line("OK".to_owned()));
    }
    let mut tally = load.stop();
    tally += attempts(&store, &charge, 8, 400);
    assert_eq!((tally.admitted, tally.failed), (3_000, 0));
    let loaded = store.counts().scripts_loaded;
    assert!(loaded >= 20, "sent in full {loaded} times");
}

/// The first settlement on a connection too, whose script the server may not know.
#[test]
fn what_was_given_back_is_there_for_the_next_request_of_the_same_caller() {
    let server = Server::start();
    for round in 0..10 {
        for limit in [Limit::fixed_window(3, DAY).from_first(), Limit::sliding_log(3, DAY)] {
            let store = on(&server);
            assert_eq!(server.cli(["SCRIPT", "FLUSH"]), Reply::Line("OK".to_owned()));
            let charge = Charge::of(limit, key("alice"), 3);
            let debit = charge.debits().next().expect("one");
            let take = || answer(store.take(&charge)).expect("the store answers");
            let taken = take();
            let receipt = taken.receipts().next().expect("it was charged");
            store.settle(debit, &receipt, 0);
            let again = take();
            assert!(taken.is_admitted() && again.is_admitted(), "{limit}, round {round}");
        }
    }
}
