//! Simulates hours of clients, servers and mishaps: the real pool and the real client, in a world that is the same in
//! every run.
//!
//! ```sh
//! cargo run --release -p sluicegate-lease --example simulate -- 100
//! ```
//!
//! prints a table of Doorman's seven scenarios with so many seeds each. With a folder after the number, the samples of
//! the first seed of each scenario are written there, as CSV.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use simulation::{SCENARIOS, Seen, Setting, scenario};

fn main() {
    let mut arguments = env::args().skip(1);
    let seeds = arguments.next().map_or(3, |seeds| seeds.parse().expect("a number of seeds"));
    let folder = arguments.next();
    println!("| scenario | world | seeds | over-grants | largest sum | use, mean | use, worst |");
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for number in SCENARIOS {
        for (name, setting) in worlds() {
            let seen: Vec<Seen> =
                (0..seeds).map(|seed| run(number, setting.clone(), seed)).collect();
            if let Some(folder) = &folder {
                write_samples(Path::new(folder), &format!("{number}-{name}"), &seen[0]);
            }
            print_row(number, name, &seen);
        }
    }
}

fn worlds() -> [(&'static str, Setting); 3] {
    [
        ("refresh 8, 4, 2 s", Setting::doorman()),
        ("refresh 1 s", Setting::doorman().refresh(Duration::from_secs(1))),
        ("bad network", Setting::doorman().bad_network()),
    ]
}

fn run(number: u32, setting: Setting, seed: u64) -> Seen {
    let (mut world, seconds) = scenario(number, setting, seed);
    world.run(seconds * 1_000);
    world.seen
}

fn print_row(number: u32, name: &str, seen: &[Seen]) {
    // The first minute is for finding out who wants what.
    let usage = seen.iter().map(|seen| seen.usage(60));
    let mean = usage.clone().sum::<f64>() / seen.len() as f64;
    let worst = usage.fold(f64::INFINITY, f64::min);
    let over: u64 = seen.iter().map(|seen| seen.over_grants).sum();
    let largest = seen.iter().map(|seen| seen.largest).fold(0.0, f64::max);
    let seeds = seen.len();
    println!(
        "| {number} | {name} | {seeds} | {over} | {largest:.2} | {:.1} % | {:.1} % |",
        mean * 100.0,
        worst * 100.0
    );
}

fn write_samples(folder: &Path, name: &str, seen: &Seen) {
    let mut csv = String::from("second,could be used,leased,used\n");
    for (second, (could, leased, used)) in (1..).zip(&seen.samples) {
        writeln!(csv, "{second},{could:.3},{leased:.3},{used:.3}").expect("a string grows");
    }
    let path = folder.join(format!("scenario-{}.csv", name.replace([' ', ','], "-")));
    fs::write(&path, csv).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
