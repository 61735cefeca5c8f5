//! How much is admitted, to however many processes.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use tollgate_core::{Charge, Limit};
use tollgate_tests::key;

use crate::DAY;
use crate::load::attempts;
use crate::store::{open, own_prefix, patient, shared};

const COUNT: u64 = 300;
const PROCESSES: usize = 4;
const TASKS: usize = 8;
const EACH: usize = 25;

/// Nothing comes back during the test: not before a day has passed.
fn limits() -> [Limit; 7] {
    [
        Limit::per_day(COUNT).burst(COUNT),
        Limit::per_day(COUNT).refill(COUNT, DAY),
        Limit::fixed_window(COUNT, DAY).from_first(),
        Limit::sliding_log(COUNT, DAY),
        // Nobody is there at the end of the year 2069.
        Limit::sliding_window(COUNT, DAY * 36_500),
        Limit::per_day(COUNT).ban(DAY),
        Limit::concurrent(COUNT),
    ]
}

/// Between the check and the act another process acts.
#[test]
fn check_then_act() {
    let prefix = own_prefix();
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| Worker::start(&prefix)).collect();
    workers.iter_mut().for_each(Worker::is_ready);
    workers.iter_mut().for_each(Worker::begin);
    let counts: Vec<_> = workers.into_iter().map(Worker::counts).collect();
    for (at, limit) in limits().iter().enumerate() {
        let admitted = counts.iter().map(|counts| counts[at]).collect::<Vec<_>>();
        assert_eq!(admitted.iter().sum::<u64>(), COUNT, "{limit}: {admitted:?}");
    }
}

/// Another process that runs this very test, and is told what to do by its environment.
struct Worker {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
    fn start(prefix: &str) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program has a file"));
        command.args(["--exact", "counting::one_of_several_processes", "--nocapture"]);
        command.env("TOLLGATE_SERVER", shared().url()).env("TOLLGATE_PREFIX", prefix);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("this program runs");
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let lines = output.lines().map(|line| line.expect("it is text"));
        Self { process, lines: Box::new(lines) }
    }

    fn is_ready(&mut self) {
        assert!(self.lines.any(|line| line == "ready"), "the process ended early");
    }

    fn begin(&mut self) {
        let input = self.process.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "go").expect("the process reads");
    }

    fn counts(mut self) -> Vec<u64> {
        let counts = self.lines.by_ref().filter_map(|line| {
            let count = line.strip_prefix("admitted ")?;
            Some(count.parse().expect("a number"))
        });
        let counts = counts.collect();
        assert!(self.process.wait().expect("it is ours").success());
        counts
    }
}

/// What the other processes do; nothing where nobody tells this one to.
#[test]
fn one_of_several_processes() {
    let (Ok(url), Ok(prefix)) = (env::var("TOLLGATE_SERVER"), env::var("TOLLGATE_PREFIX")) else {
        return;
    };
    let store = open(patient().url(&url).prefix(&prefix));
    attempts(&store, &Charge::of(Limit::per_second(1), key("to get connected"), 1), 1, 1);
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).expect("the parent is there");
    for limit in limits() {
        let tally = attempts(&store, &Charge::of(limit, key("alice"), 1), TASKS, EACH);
        assert_eq!(tally.failed, 0);
        println!("\nadmitted {}", tally.admitted);
    }
}
