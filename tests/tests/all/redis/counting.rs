//! How many requests are admitted, to any number of processes.

use std::env;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_tests::key;

use super::DAY;
use super::load::attempts;
use super::store::{open, own_prefix, patient};
use super::worker::Worker;

const COUNT: u64 = 300;
const PROCESSES: usize = 4;
const TASKS: usize = 8;
const EACH: usize = 25;

/// Nothing is refilled during the test: that takes a day.
fn limits() -> [Limit; 7] {
    [
        Limit::per_day(COUNT).burst(COUNT),
        Limit::per_day(COUNT).refill(COUNT, DAY),
        Limit::fixed_window(COUNT, DAY).from_first(),
        Limit::sliding_log(COUNT, DAY),
        // A window that ends at the end of the year 2069.
        Limit::sliding_window(COUNT, DAY * 36_500),
        Limit::per_day(COUNT).ban(DAY),
        Limit::concurrent(COUNT),
    ]
}

/// Another process charges between the check and the charge.
#[test]
fn check_then_act() {
    let prefix = own_prefix();
    let mut workers: Vec<_> = (0..PROCESSES)
        .map(|_| Worker::start("counting::one_of_several_processes", "SLUICEGATE_SERVER", &prefix))
        .collect();
    workers.iter_mut().for_each(Worker::is_ready);
    workers.iter_mut().for_each(Worker::begin);
    let counts = |worker: Worker| -> Vec<u64> {
        worker.admitted().iter().map(|count| count.parse().expect("a number")).collect()
    };
    let counts: Vec<_> = workers.into_iter().map(counts).collect();
    for (at, limit) in limits().iter().enumerate() {
        let admitted = counts.iter().map(|counts| counts[at]).collect::<Vec<_>>();
        assert_eq!(admitted.iter().sum::<u64>(), COUNT, "{limit}: {admitted:?}");
    }
}

/// The part of the other processes. Does nothing in an ordinary test run.
#[test]
fn one_of_several_processes() {
    let (Ok(url), Ok(prefix)) = (env::var("SLUICEGATE_SERVER"), env::var("SLUICEGATE_PREFIX"))
    else {
        return;
    };
    let store = open(patient().url(&url).prefix(&prefix));
    attempts(&store, &Charge::of(Limit::per_second(1), key("to get connected"), 1), 1, 1);
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the parent process runs");
    for limit in limits() {
        let tally = attempts(&store, &Charge::of(limit, key("alice"), 1), TASKS, EACH);
        assert_eq!(tally.failed, 0);
        println!("\nadmitted {}", tally.admitted);
    }
}
