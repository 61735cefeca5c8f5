//! A flood: ten million new keys against a table with a bound of one million.
//!
//! Every decision is timed by itself, and nothing is subtracted: `nothing` is the time of two readings of the clock.
//! `Instant` waits until earlier instructions are done. The processor's bare counter does not, so a cache miss would
//! fall outside of the time that it belongs to. Each key comes once and has a row of its own, which is in no cache
//! near the processor. A thousand keys were being limited when the flood began, and are asked again throughout. Each
//! contender has its own processes, so that resident memory is its own.
//!
//! Resident memory is read on Linux only; elsewhere those columns are empty.

use std::collections::HashMap;
use std::process::exit;
use std::time::{Duration, Instant};

use sluicegate_axum::Memory;
use sluicegate_benches::direct::{Bucket, Direct, Governor, Nothing, RateNet, Sluicegate, Verdict};
use sluicegate_benches::floor::Floor;
use sluicegate_benches::process::{self, resident, tell};
use sluicegate_benches::{Figure, Histogram, Table, Turns};

/// The contenders. In all but the last, each key keeps its row: the limit is one an hour.
const CONTENDERS: [&str; 6] = [
    "nothing",
    "floor, no bound",
    "governor, no bound",
    "rate-net",
    "sluicegate",
    "sluicegate, keys recover in 1 ms",
];

const TIMES: [&str; 7] =
    ["flooded", "median", "p99", "p99.9", "p99.99", "slowest, µs", "p99.9 ÷ median"];

const ENDS: [&str; 8] = [
    "flooded",
    "admitted",
    "refused, though new",
    "not counted: no room",
    "`turned_away`",
    "limited before, asked again",
    "let through",
    "first of all, µs",
];

const SIZES: [&str; 5] =
    ["flooded", "before", "a thousand keys limited", "a million keys later", "at the end"];

fn main() {
    if let Some(part) = process::part() {
        let [contender, seen] = &part[..] else { panic!("what is flooded, and by how many") };
        flood(contender, seen.parse().expect("a number of keys"));
        // Exits without waiting until millions of keys are freed.
        exit(0);
    }
    let turns = Turns::from_args();
    let titles = ["The flood, ns", "The flood, decisions", "The flood, resident MB"];
    if !titles.iter().any(|title| turns.wants(title)) {
        return;
    }
    let (rounds, seen) = match (turns.is_measuring(), turns.is_full()) {
        (false, _) => (1, "20000"),
        (_, false) => (3, "10000000"),
        (_, true) => (9, "10000000"),
    };
    let mut runs = CONTENDERS.map(|_| Vec::new());
    for _ in 0..rounds {
        for (contender, runs) in CONTENDERS.iter().zip(&mut runs) {
            runs.push(process::run(&[contender, seen]));
        }
    }
    let print = |title: &str, columns: &[&str], which: usize, cell: fn(&Runs, &str) -> String| {
        Table::print_columns(&turns, title, columns, |table| {
            for (contender, runs) in CONTENDERS.iter().zip(&runs).skip(which) {
                let cells: Vec<_> = columns[1..].iter().map(|name| cell(runs, name)).collect();
                table.row(contender, &cells);
            }
        });
    };
    print(titles[0], &TIMES, 0, |runs, name| figure(runs, name).to_string());
    // `nothing` neither limits nor stores anything.
    print(titles[1], &ENDS, 1, whole);
    print(titles[2], &SIZES, 1, whole);
}

/// The numbers that each run of a contender reported.
type Runs = Vec<HashMap<String, f64>>;

fn figure(runs: &Runs, name: &str) -> Figure {
    let numbers = runs.iter().filter_map(|run| run.get(name).copied());
    Figure::of(numbers.collect())
}

/// The median, if any run reported it.
fn whole(runs: &Runs, name: &str) -> String {
    match runs.iter().any(|run| run.contains_key(name)) {
        true => format!("{:.0}", figure(runs, name).median),
        false => "–".to_owned(),
    }
}

/// A tenth as many rows as keys come.
fn flood(contender: &str, seen: u64) {
    let (bound, scarce) = (seen / 10, Bucket::SCARCE);
    tell_resident("before");
    match contender {
        "nothing" => Flood::of(&Nothing, &Nothing).run(seen),
        "floor, no bound" => {
            let floor = Floor::new(scarce.interval, scarce.burst, seen);
            Flood::of(&floor, &floor).run(seen);
        }
        "governor, no bound" => {
            let governor = Governor::new(scarce);
            Flood::of(&governor, &governor).run(seen);
        }
        "rate-net" => {
            let rate_net = RateNet::bounded(scarce, bound);
            Flood::of(&rate_net, &rate_net).run(seen);
        }
        sluicegate => {
            let store = Memory::with_capacity(bound as usize);
            let limited = Sluicegate::over(scarce, store.clone());
            if sluicegate == "sluicegate" {
                Flood::of(&limited, &limited).run(seen);
            } else {
                let quick = Bucket { interval: Duration::from_millis(1), burst: 1 };
                Flood::of(&limited, &Sluicegate::over(quick, store.clone())).run(seen);
            }
            tell("`turned_away`", store.turned_away() as f64);
        }
    }
}

struct Flood<'a, D> {
    /// Limits the first keys. It is flooded itself, or shares a store with the limiter that is.
    limited: &'a D,
    flooded: &'a D,
    buffer: String,
}

/// Keys that are being limited when the flood begins.
const LIMITED: u64 = 1_000;

/// One of them is asked again after this many other keys.
const OFTEN: u64 = 1_000;

impl<'a, D: Direct<u64>> Flood<'a, D> {
    fn of(limited: &'a D, flooded: &'a D) -> Self {
        Self { limited, flooded, buffer: String::new() }
    }

    fn run(mut self, seen: u64) {
        let before = Instant::now();
        self.limit(0);
        tell("first of all, µs", before.elapsed().as_secs_f64() * 1e6);
        (1..LIMITED).for_each(|number| self.limit(number));
        tell_resident("a thousand keys limited");

        let mut times = Histogram::default();
        let (mut verdicts, mut let_through) = ([0_u64; 3], 0_u64);
        for number in 0..seen {
            let key = scattered(LIMITED + number);
            let before = Instant::now();
            let verdict = self.flooded.take(&key, &mut self.buffer);
            times.record(before.elapsed().as_nanos() as u64);
            verdicts[verdict as usize] += 1;
            if number % OFTEN == 0 {
                let key = scattered(number / OFTEN % LIMITED);
                let verdict = self.limited.take(&key, &mut self.buffer);
                let_through += u64::from(verdict != Verdict::Refused);
            }
            if number + 1 == seen / 10 {
                tell_resident("a million keys later");
            }
        }
        tell_resident("at the end");
        for (name, count) in ENDS[1..4].iter().zip(verdicts) {
            tell(name, count as f64);
        }
        tell("limited before, asked again", seen.div_ceil(OFTEN) as f64);
        tell("let through", let_through as f64);
        let parts = [2, 100, 1_000, 10_000].map(|one_in| times.all_but_one_in(one_in) as f64);
        for (name, time) in TIMES[1..5].iter().zip(parts) {
            tell(name, time);
        }
        tell("slowest, µs", times.max() as f64 / 1e3);
        tell("p99.9 ÷ median", parts[2] / parts[0]);
    }

    /// Spends all that key number `number` may spend.
    fn limit(&mut self, number: u64) {
        let key = scattered(number);
        let _ = (0..4).find(|_| self.limited.take(&key, &mut self.buffer) == Verdict::Refused);
    }
}

fn tell_resident(when: &str) {
    if let Some(bytes) = resident() {
        tell(when, bytes as f64 / 1e6);
    }
}

/// A distinct key for each number, in random order (the last step of the generator `SplitMix64`).
fn scattered(number: u64) -> u64 {
    let mut key = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}
