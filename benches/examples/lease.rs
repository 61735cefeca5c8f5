//! What an ask of the lease pool costs, by the number of clients, and how much memory a client takes:
//!
//! ```sh
//! cargo run --release --package sluicegate-benches --example lease
//! ```
//!
//! Each client asks once a second, and the pool ticks every 100 ms, as a server does. In each second, one client in ten
//! wants something new. With a number of clients and a number of seconds as arguments, only that is run, for a profiler.

use std::alloc::System;
use std::env;
use std::time::Instant;

use sluicegate_lease::pool::{Answer, Ask, Pool};
use sluicegate_lease::{Amount, Demand, Template, Templates};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RESOURCE: &str = "db";
/// Enough for everyone with up to 10,000 clients, not with more.
const CAPACITY: u64 = 1_000_000;
const TICKS_A_SECOND: u64 = 10;

fn main() {
    let numbers: Vec<u64> =
        env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    println!("| clients | µs an ask, with its part of the ticks | bytes a client |");
    println!("| ---: | ---: | ---: |");
    match numbers[..] {
        [clients, seconds] => row(clients, seconds),
        _ => [10, 1_000, 10_000, 100_000, 1_000_000]
            .iter()
            .for_each(|&clients| row(clients, (2_000_000 / clients).clamp(2, 1_000))),
    }
}

fn row(clients: u64, seconds: u64) {
    let mut asking: Vec<Client> = (0..clients).map(Client::new).collect();
    let before = Region::new(ALLOCATOR);
    let mut pool = pool();
    // All have come, and all have a fair share, after a few seconds.
    let mut sequence = 0;
    for _ in 0..4 {
        sequence += 1;
        a_second(&mut pool, &mut asking, sequence);
    }
    let change = before.change();
    let bytes = change.bytes_allocated as f64 - change.bytes_deallocated as f64;

    let started = Instant::now();
    for _ in 0..seconds {
        sequence += 1;
        a_second(&mut pool, &mut asking, sequence);
    }
    let micros = started.elapsed().as_secs_f64() * 1e6;
    let (asks, clients) = ((seconds * clients) as f64, clients as f64);
    println!("| {clients} | {:.2} | {:.0} |", micros / asks, bytes / clients);
}

struct Client {
    name: String,
    wants: Demand,
    has: Amount,
}

impl Client {
    fn new(number: u64) -> Self {
        let wants = Demand::of(Amount::units(1 + number % 100));
        // Clients come in no order of their names.
        let name = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { name: format!("worker-{name:016x}"), wants, has: Amount::ZERO }
    }
}

fn pool() -> Pool {
    let template = Template::new("*", Amount::units(CAPACITY));
    let mut pool = Pool::new(Templates::new([template]).expect("a template that works"));
    pool.lead(0, 1, Some(Vec::new()));
    pool
}

/// Every client asks once, and every tenth wants something new.
fn a_second(pool: &mut Pool, clients: &mut [Client], second: u64) {
    let count = clients.len() as u64;
    let part = count.div_ceil(TICKS_A_SECOND) as usize;
    for (tick, part) in clients.chunks_mut(part).enumerate() {
        let now = second * 1_000 + tick as u64 * 1_000 / TICKS_A_SECOND;
        pool.tick(now);
        for (at, client) in part.iter_mut().enumerate() {
            if (at as u64 + second).is_multiple_of(10) {
                let wants = (client.wants.want.wants.millionths() * 7 + second) % 200_000_000;
                client.wants = Demand::of(Amount::from_millionths(wants));
            }
            let wants = [client.wants];
            let ask =
                Ask { has: client.has, ..Ask::new(&client.name, RESOURCE, second, 1, &wants) };
            if let Ok(Answer::Grant(grant)) = pool.ask(now, &ask) {
                client.has = grant.capacity;
            }
        }
        pool.take_changes().for_each(drop);
    }
}
