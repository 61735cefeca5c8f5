//! The memory for a key: how much the process grows when a limiter is made and has seen its keys, by the number of
//! keys. sluicegate is made for exactly this many keys, so it is as full as allowed. The others grow, or are made as
//! in `table.rs`.
//!
//! Each figure comes from a process of its own. Linux only: other systems do not report resident memory.

use std::thread;

use sluicegate_benches::direct::{
    Bucket, Direct, Governor, Limitador, RateNet, Sluicegate, Throttlecrab, TokioRateLimit, Verdict,
};
use sluicegate_benches::floor::Floor;
use sluicegate_benches::keys::{Key, long_text};
use sluicegate_benches::process::{self, resident, tell};
use sluicegate_benches::{Table, Turns};

const TITLE: &str = "Resident bytes per key";

const COLUMNS: [&str; 8] = [
    "keys",
    "sluicegate",
    "floor",
    "governor",
    "rate-net",
    "throttlecrab",
    "tokio-rate-limit",
    "limitador",
];

/// Contenders that are given ten million keys in the short form too. The others take up to minutes.
const QUICK: [&str; 3] = ["sluicegate", "floor", "governor"];

fn main() {
    if let Some(part) = process::part() {
        let [contender, keys, length] = &part[..] else { panic!("who, how many keys, how long") };
        let keys = keys.parse().expect("a number of keys");
        match length.parse().expect("a length") {
            8 => measure(contender, keys, u64::number(0)),
            length => measure(contender, keys, long_text(0, length)),
        }
        return;
    }
    let turns = Turns::from_args();
    if !turns.wants(TITLE) {
        return;
    }
    if resident().is_none() {
        println!("\n{TITLE}: not measured, this system does not say what is resident.");
        return;
    }
    let keys = if turns.is_measuring() { &["1000000", "10000000"][..] } else { &["1000"] };
    Table::print(&turns, TITLE, COLUMNS, |table| {
        for keys in keys {
            for length in ["8", "24", "200"] {
                let is_wanted =
                    |who| *keys != "10000000" || turns.is_full() || QUICK.contains(&who);
                let cell = |who| match is_wanted(who) {
                    true => format!("{:.1}", process::run(&[who, keys, length])["bytes per key"]),
                    false => "–".to_owned(),
                };
                // Two processes at a time: no time is measured.
                let pairs = COLUMNS[1..].chunks(2).map(|pair| {
                    thread::scope(|scope| {
                        let running: Vec<_> =
                            pair.iter().map(|who| scope.spawn(|| cell(who))).collect();
                        running.into_iter().map(|thread| thread.join().expect("told")).collect()
                    })
                });
                let cells: Vec<String> = pairs.flat_map(|pair: Vec<_>| pair).collect();
                table.row(&format!("{keys} × {length} bytes"), &cells);
            }
        }
    });
}

fn measure<K: Key>(contender: &str, keys: u64, key: K)
where
    RateNet: Direct<K>,
{
    let bucket = Bucket::plenty(keys);
    let before = resident().unwrap_or_default();
    let limiter: Box<dyn Direct<K>> = match contender {
        "sluicegate" => Box::new(Sluicegate::new(bucket, keys)),
        "floor" => Box::new(Floor::new(bucket.interval, bucket.burst, keys)),
        "governor" => Box::new(Governor::new(bucket)),
        "rate-net" => Box::new(RateNet::new(bucket, keys)),
        "throttlecrab" => Box::new(Throttlecrab::new(bucket, keys)),
        "tokio-rate-limit" => Box::new(TokioRateLimit::new(bucket)),
        "limitador" => Box::new(Limitador::new(bucket, keys)),
        other => panic!("nobody is called {other}"),
    };
    let (mut key, mut buffer) = (key, String::new());
    for number in 0..keys {
        key.renumber(number);
        assert_eq!(limiter.take(&key, &mut buffer), Verdict::Admitted);
    }
    let more = resident().unwrap_or_default().saturating_sub(before);
    tell("bytes per key", more as f64 / keys as f64);
    // Exits without waiting until millions of keys are freed.
    std::process::exit(0);
}
