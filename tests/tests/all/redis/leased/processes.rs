use std::env;

use super::super::worker::Worker;
use super::*;

const COUNT: u64 = 2_000;
const PROCESSES: usize = 4;
const TASKS: usize = 8;
const EACH: usize = 150;
/// The most that a process leases at once.
const LEASE: u64 = 100;

fn limits() -> [Limit; 2] {
    [Limit::per_day(COUNT), Limit::fixed_window(COUNT, DAY).from_first()]
}

/// Four processes want more than the limit. What they get, what expired unused, and what is left in the end add up to
/// the limit, exactly.
#[test]
fn check_then_act() {
    let prefix = own_prefix();
    let mut workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let test = "leased::processes::one_of_several_processes";
            Worker::start(test, "SLUICEGATE_LEASE_FROM", &prefix)
        })
        .collect();
    workers.iter_mut().for_each(Worker::is_ready);
    workers.iter_mut().for_each(Worker::begin);
    let told: Vec<_> = workers.into_iter().map(told).collect();
    let redis = open(patient().url(&shared().url()).prefix(&prefix));
    for (at, limit) in limits().iter().enumerate() {
        let (mut admitted, mut expired) = (0, 0);
        for lines in &told {
            admitted += lines[at][0];
            expired += lines[at][1];
        }
        let left = left(&redis, *limit, "alice");
        // A token of the bucket drains in 43 s, so little of it drains during the test: none or one. Tokens that are
        // given back below another process's lease are not counted as left, because they drain.
        let least = if at == 0 { COUNT - COUNT / 20 } else { COUNT };
        let known = admitted + expired + left;
        assert!((least..=COUNT + 1).contains(&known), "{limit}: {told:?}, {left}");
        assert!(admitted <= COUNT, "{limit}: {told:?}");
        // While one process is refused, each of the others may hold the rest of a lease.
        assert!(admitted >= COUNT - (PROCESSES as u64 - 1) * LEASE, "{limit}: {told:?}");
    }
}

/// For each limit, how much was admitted, and how much expired.
fn told(worker: Worker) -> Vec<[u64; 2]> {
    let numbers = |line: &String| {
        let (admitted, expired) = line.split_once(' ').expect("two numbers");
        [admitted, expired].map(|number| number.parse().expect("a number"))
    };
    worker.admitted().iter().map(numbers).collect()
}

/// The part of the other processes. Does nothing in an ordinary test run.
#[test]
fn one_of_several_processes() {
    let (Ok(url), Ok(prefix)) = (env::var("SLUICEGATE_LEASE_FROM"), env::var("SLUICEGATE_PREFIX"))
    else {
        return;
    };
    let store = Leased::new(open(patient().url(&url).prefix(&prefix)), 1..=LEASE);
    admitted(&store, &Charge::of(Limit::concurrent(100), key("to get connected"), 1), 1, 1);
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the parent process runs");
    for limit in limits() {
        let expired = store.counts().expired;
        let admitted = admitted(&store, &charge(limit), TASKS, EACH);
        flushed(&store);
        println!("\nadmitted {admitted} {}", store.counts().expired - expired);
    }
}
