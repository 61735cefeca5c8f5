//! One decision, over and over, for a profiler: by a limit that follows a lease, with its count of what is wanted, and by
//! other limits to compare it with.
//!
//! ```sh
//! cargo build --release --package sluicegate-lease --example lease_cost
//! perf stat -e instructions:u,cycles:u target/release/examples/lease_cost lease 10000000
//! ```

use std::env;
use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::{Fleet, Share, Store};
use sluicegate_core::{Limit, Memory};
use sluicegate_lease::{Amount, LeasedLimit};

fn main() {
    let mut arguments = env::args().skip(1);
    let which = arguments.next().unwrap_or_default();
    let times: u64 = arguments.next().map_or(1, |times| times.parse().expect("a number"));
    let limit = Limit::per_second(1_000_000);
    match which.as_str() {
        "lease" | "refused" => {
            let lease = LeasedLimit::rate("db").build().expect("a limit");
            let units = if which == "lease" { 500_000_000 } else { 0 };
            lease.grant(Amount::units(units), Duration::from_secs(3_600), Amount::ZERO);
            ask(&lease, lease.limit(), times);
        }
        "gauge" => {
            let lease = LeasedLimit::gauge("db").build().expect("a limit");
            lease.grant(Amount::units(500_000_000), Duration::from_secs(3_600), Amount::ZERO);
            ask(&lease, lease.limit(), times);
        }
        "memory" => ask(&Memory::new(), limit, times),
        "share" => {
            let fleet = Fleet::assigned(1, Duration::from_secs(2));
            ask(&Share::new(Memory::new(), &fleet).count_wanted(), limit, times);
        }
        _ => eprintln!("lease, refused, gauge, memory or share; and how often"),
    }
}

fn ask(store: &impl Store, limit: Limit, times: u64) {
    let charge = Charge::of(limit, KeyBuf::new(), 1);
    for _ in 0..times {
        std::hint::black_box(&store.take(std::hint::black_box(&charge)));
    }
}
