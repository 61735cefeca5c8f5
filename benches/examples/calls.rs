//! Calls one server of the tables of the server for a while, for a profiler. The program of the benchmark is that server, until its
//! input ends:
//!
//! ```sh
//! cargo bench --package sluicegate-benches --features server --bench server --no-run  # names the program
//! mkfifo input; valgrind --tool=callgrind PROGRAM --answer=Like < input & exec 3> input  # prints its address
//! cargo run --release --package sluicegate-benches --features server --example calls -- --answer=Like ADDRESS 5
//! exec 3>&-
//! ```
//!
//! What a call costs is the difference between a long and a short run, by the difference of their calls.

use std::env;
use std::error::Error;
use std::time::Duration;

use sluicegate_benches::load::{Load, Requests};
use sluicegate_benches::quota::{asked_for, requests};

/// Connections, and calls under way on each, as in the benchmark.
const GRPC: (usize, usize) = (4, 16);
const HTTP: (usize, usize) = (16, 1);

fn main() -> Result<(), Box<dyn Error>> {
    let kind = asked_for().ok_or("expected a kind of server, such as --answer=Like")?;
    let address = env::args().nth(2).ok_or("expected an address")?.parse()?;
    let seconds = env::args().nth(3).ok_or("expected a number of seconds")?.parse()?;
    let requests = requests(kind);
    let (connections, in_flight) = match requests {
        Requests::Grpc { .. } => GRPC,
        Requests::Http { .. } => HTTP,
    };
    let mut load = Load::connect(address, &requests, connections, in_flight)?;
    println!("{}", load.flood(Duration::from_secs(seconds))?.count);
    Ok(())
}
