//! 10,000 clients on three levels that share five million requests a second, with mishaps.

use std::fs;
use std::time::{Duration, Instant};

use super::Wishes;
use super::simulation::{Seen, crowd, crowded};

/// One client in a hundred has a real token bucket.
const BUCKETS: usize = 100;
/// For how long they send requests, in seconds.
const FILLED: u64 = 300;
const START: usize = 60;
/// An hour of the crowd takes less time than this on one core.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs it, prints a table, and returns what is not as promised.
pub(crate) fn run(wishes: &Wishes) -> Vec<String> {
    let seconds = if wishes.is_short { 90 } else { 3_600 };
    let seed = wishes.seeds.start;
    println!("<!-- part: crowd -->\n");
    println!("| world | simulated | requests for leases | over-grants | use |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut problems = Vec::new();
    let names = ["calm", "a mishap a minute", "a mishap a minute, bad network"];
    for (at, name) in names.into_iter().enumerate() {
        let started = Time::now();
        let setting = if at == 2 { crowded().bad_network() } else { crowded() };
        let mut world = crowd(setting, seed);
        if at > 0 {
            world.mishaps();
        }
        world.run(seconds * 1_000);
        let took = started.elapsed();
        eprintln!(
            "{seconds} s of 10,000 clients, {name}: simulated in {:.1} s",
            took.as_secs_f64()
        );
        print_row(name, seconds, &world.seen);
        if world.seen.over_grants > 0 {
            problems.push(format!("10,000 clients, {name}: {} was leased", world.seen.largest));
        }
        if at == 0 && world.seen.usage(START) < 0.99 {
            problems.push(format!("10,000 clients: {} is used", world.seen.usage(START)));
        }
        if at == 0 && took > LONGEST {
            problems.push(format!("10,000 clients took {took:.1?}"));
        }
    }
    println!();
    problems.extend(fill_buckets(seed, wishes.is_short));
    problems
}

/// The time of the processor, if the system tells, or else that of the wall.
struct Time(Instant, Option<Duration>);

impl Time {
    fn now() -> Self {
        // On Linux, the first number is the time on a processor in nanoseconds.
        let text = fs::read_to_string("/proc/self/schedstat").ok();
        let nanos = text.and_then(|text| text.split(' ').next()?.parse().ok());
        Self(Instant::now(), nanos.map(Duration::from_nanos))
    }

    fn elapsed(&self) -> Duration {
        match (self.1, Self::now().1) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.0.elapsed(),
        }
    }
}

fn print_row(name: &str, seconds: u64, seen: &Seen) {
    let (requests, over) = (seen.happened.requests, seen.over_grants);
    let usage = seen.usage(START) * 100.0;
    println!("| {name} | {seconds} s | {requests} | {over} | {usage:.1} % |");
}

/// Compares the fluid model with real token buckets.
fn fill_buckets(seed: u64, is_short: bool) -> Option<String> {
    let mut world = crowd(crowded(), seed);
    let start = START as u64 * 1_000;
    world.run(start);
    world.fill_buckets(BUCKETS);
    let seconds = if is_short { 20 } else { FILLED };
    world.run(start + seconds * 1_000);
    let (admitted, fluid) = world.admitted();
    let per_second = |requests: f64| requests * BUCKETS as f64 / seconds as f64;
    let (real, model) = (per_second(admitted as f64), per_second(fluid));
    let apart = (real / model - 1.0) * 100.0;
    println!("<!-- part: buckets -->\n");
    println!("| capacity | by the fluid model | by real token buckets | apart |");
    println!("| ---: | ---: | ---: | ---: |");
    println!("| 5000000/s | {model:.0}/s | {real:.0}/s | {apart:.2} % |\n");
    (apart.abs() > 1.0)
        .then(|| format!("the fluid model and real token buckets are {apart:.2} % apart"))
}
