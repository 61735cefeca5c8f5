//! What a share costs a decision, on top of `Memory` alone: the same limit and key, in turns.
//!
//!     cargo run --release -p sluicegate-benches --example share
//!     perf stat -e instructions:u,cycles:u target/release/examples/share Memory 10000000
//!
//! With a name, that row alone is run, for a profiler.

use std::env;
use std::hint::black_box;
use std::time::{Duration, Instant};

use sluicegate::adapter::{AtOnce, Charge};
use sluicegate::key::KeyBuf;
use sluicegate::store::{Fleet, Share, Store};
use sluicegate::{Limit, Memory};

/// A name, and what decides once.
type Row = (&'static str, Box<dyn Fn(&Charge) -> bool>);

const ROUNDS: usize = 200;
const TURNS: u32 = 20_000;

fn main() {
    let fleet = Fleet::assigned(96, Duration::from_secs(2));
    let share = || Share::new(Memory::new(), &fleet);
    let rows: [Row; 3] = [
        ("Memory", decide(Memory::new())),
        ("Share", decide(share())),
        ("Share, counting what is wanted", decide(share().count_wanted())),
    ];
    // Each decision is admitted: a rate that nobody reaches.
    let limit = Limit::per_second(20_000_000_000);
    let charge = Charge::of(limit, KeyBuf::of("api"), 1);
    let run = |row: &Row, turns: u32| {
        (0..turns).for_each(|_| assert!(row.1(black_box(&charge)), "it is admitted"));
    };

    let mut arguments = env::args().skip(1);
    if let Some(name) = arguments.next() {
        let turns = arguments.next().map_or(1, |turns| turns.parse().expect("a number"));
        return run(rows.iter().find(|row| row.0 == name).expect("a row of that name"), turns);
    }
    let mut nanos = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (row, nanos) in rows.iter().zip(&mut nanos) {
            let started = Instant::now();
            run(row, TURNS);
            nanos.push(started.elapsed().as_nanos() as f64 / f64::from(TURNS));
        }
    }
    for ((name, _), mut nanos) in rows.iter().zip(nanos) {
        nanos.sort_by(f64::total_cmp);
        println!("{name}: {:.1} ns", nanos[ROUNDS / 2]);
    }
}

fn decide(store: impl Store<Future: AtOnce> + 'static) -> Box<dyn Fn(&Charge) -> bool> {
    Box::new(move |charge| store.take(charge).now().is_ok_and(|outcome| outcome.is_admitted()))
}
