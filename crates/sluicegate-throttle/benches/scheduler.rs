//! What the scheduler takes for an offer and an end, with an empty queue and with 10,000 queued requests.
//!
//! `cargo bench -p sluicegate-throttle --bench scheduler`

use std::hint::black_box;
use std::time::{Duration, Instant};

use sluicegate_throttle::Class;
use sluicegate_throttle::scheduler::{Instruction, Offer, Offered, Outcome, Running, Scheduler};

const QUEUED: u64 = 10_000;
const ROUNDS: u64 = 200_000;
const TURNS: usize = 7;

fn main() {
    println!("median of {TURNS} turns, nanoseconds for each operation");
    for (name, flows) in [("one flow", 1), ("64 flows", 64), ("10,000 flows", 10_000)] {
        let (offer, done) = with_queued(flows);
        println!("10,000 queued, {name:>12}: offer {offer:>4}, done and start the next {done:>4}");
    }
    println!("10,000 queued, full, evicting: offer {:>4}", evicting());
    println!("empty queue: offer and done {:>4}", empty());
}

fn request(number: u64, flows: u64) -> Offer {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Offer {
        class: Class::at((mixed % 4) as u8),
        flow: (mixed % flows).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        cost: 1 + mixed % 20,
        deadline: Some(u64::MAX),
        partition: None,
    }
}

fn filled(bound: u64, flows: u64) -> (Scheduler, Running, u64) {
    let builder = Scheduler::builder().in_flight(1).queue(bound);
    let mut scheduler = builder.build().expect("it works");
    let mut out = Vec::new();
    let Offered::Start(running) = scheduler.offer(0, request(0, flows), &mut out) else {
        panic!("the first one is started")
    };
    let mut number = 1;
    while (scheduler.len() as u64) < QUEUED {
        black_box(scheduler.offer(0, request(number, flows), &mut out));
        number += 1;
    }
    (scheduler, running, number)
}

/// Replaces what is started, so that 10,000 stay queued: the time of offers and that of ends.
fn with_queued(flows: u64) -> (u64, u64) {
    let mut offers = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..TURNS {
        let (mut scheduler, mut running, mut number) = filled(1 << 40, flows);
        let mut out = Vec::new();
        let (mut offer, mut end) = (Duration::ZERO, Duration::ZERO);
        // In portions, so that reading the clock does not count.
        for portion in 0..ROUNDS / 100 {
            let start = Instant::now();
            for _ in 0..100 {
                black_box(scheduler.offer(portion, request(number, flows), &mut out));
                number += 1;
            }
            offer += start.elapsed();
            let start = Instant::now();
            for _ in 0..100 {
                scheduler.done(portion, running, Some(5), Outcome::Success, &mut out);
                let Some(Instruction::Start(_, next)) = out.pop() else { panic!("one starts") };
                running = next;
            }
            end += start.elapsed();
        }
        offers.push(offer.as_nanos() as u64 / ROUNDS);
        ends.push(end.as_nanos() as u64 / ROUNDS);
    }
    (median(offers), median(ends))
}

/// Offers critical requests to a queue that is full of sheddable ones.
fn evicting() -> u64 {
    let turn = || {
        let builder = Scheduler::builder().in_flight(1).queue(QUEUED);
        let mut scheduler = builder.build().expect("it works");
        let mut out = Vec::new();
        for number in 0..=QUEUED {
            let offer = Offer { class: Class::SHEDDABLE, cost: 1, ..request(number, 64) };
            black_box(scheduler.offer(0, offer, &mut out));
        }
        let start = Instant::now();
        for number in 0..QUEUED {
            let offer = Offer { class: Class::CRITICAL, cost: 1, ..request(number, 64) };
            black_box(scheduler.offer(0, offer, &mut out));
            out.clear();
        }
        start.elapsed().as_nanos() as u64 / QUEUED
    };
    median((0..TURNS).map(|_| turn()).collect())
}

fn empty() -> u64 {
    let turn = || {
        let builder = Scheduler::builder().in_flight(1).queue(QUEUED);
        let mut scheduler = builder.build().expect("it works");
        let mut out = Vec::new();
        let start = Instant::now();
        for number in 0..ROUNDS {
            let offered = scheduler.offer(number, request(number, 64), &mut out);
            let Offered::Start(running) = offered else { panic!("nothing else runs") };
            scheduler.done(number, running, Some(5), Outcome::Success, &mut out);
        }
        start.elapsed().as_nanos() as u64 / ROUNDS
    };
    median((0..TURNS).map(|_| turn()).collect())
}

fn median(mut turns: Vec<u64>) -> u64 {
    turns.sort_unstable();
    turns[turns.len() / 2]
}
