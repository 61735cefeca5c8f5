//! Doorman's scenarios and ours, each with many seeds, in three worlds.

use std::fmt::Write as _;
use std::time::Duration;

use super::Wishes;
use super::simulation::{SCENARIOS, Seen, Setting, scenario};

/// The first minute is for finding out who wants what.
const START: usize = 60;
/// When the scenarios with a spike have it, and when the third one has a master again.
const SPIKE: usize = 150;
const BACK: usize = 190;
/// Shares are fair if clients lack less than this part of what could be used to their fair shares.
const FAIR: f64 = 0.02;
/// Doorman's clients were back to fair shares 120 seconds after a spike.
const FAIR_WITHIN: usize = 6;

/// The least part that is used in an hour of mishaps of a master, in every world.
const SEVERAL_SERVERS: f64 = 0.85;

/// With fewer seeds, use and fairness are not checked: a single hour can be worse than most.
const ENOUGH: usize = 5;

const DOORMAN: &str = "refresh 8, 4, 2 s";
const QUICK: &str = "refresh 1 s";
const BAD: &str = "bad network";

fn worlds() -> [(&'static str, Setting); 3] {
    [
        (DOORMAN, Setting::doorman()),
        (QUICK, Setting::doorman().refresh(Duration::from_secs(1))),
        (BAD, Setting::doorman().bad_network()),
    ]
}

/// What the scenario does to the servers and clients.
fn title(number: u32) -> &'static str {
    match number {
        1 => "five clients, one server",
        2 => "the server is away for 20 s",
        3 => "the server is away for 70 s",
        4 => "two levels",
        5 => "45 clients, three levels",
        6 => "two of them want 1,000",
        7 => "an hour with a mishap a minute",
        8 => "45 modest clients, two of them want 1,000",
        _ => "60 clients of several servers, an hour with a mishap a minute",
    }
}

/// Runs all of them, prints tables, and returns what is not as promised.
pub(crate) fn run(wishes: &Wishes) -> Vec<String> {
    let mut rows = Vec::new();
    let mut csv = String::from("scenario,world,seed,over-grants,largest sum,use\n");
    for number in SCENARIOS {
        for (world, setting) in worlds() {
            let seen = wishes.seeds.clone().map(|seed| {
                let (mut world, seconds) = scenario(number, setting.clone(), seed);
                world.run(seconds * 1_000);
                world.seen
            });
            let seen: Vec<Seen> = seen.collect();
            for (seed, seen) in wishes.seeds.clone().zip(&seen) {
                let (over, largest, usage) = (seen.over_grants, seen.largest, seen.usage(START));
                writeln!(csv, "{number},\"{world}\",{seed},{over},{largest:.6},{usage:.6}")
                    .expect("a string grows");
            }
            if world == DOORMAN {
                wishes.write(&format!("scenario-{number}.csv"), &seen[0].csv());
            }
            rows.push(Row { number, world, seen });
        }
    }
    wishes.write("results.csv", &csv);
    print(&rows, wishes.seeds.end - wishes.seeds.start);
    rows.iter().flat_map(Row::problems).collect()
}

/// One scenario in one world.
struct Row {
    number: u32,
    world: &'static str,
    seen: Vec<Seen>,
}

fn print(rows: &[Row], seeds: u64) {
    println!("<!-- part: use -->\n\nWith {seeds} seeds of each:\n");
    println!("| scenario | world | over-grants | largest sum | use, mean | use, worst seed |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for row in rows {
        let (number, title, world) = (row.number, title(row.number), row.world);
        let (over, largest) = (row.over_grants(), row.largest());
        let (mean, worst) = row.usage();
        let [mean, worst] = [mean, worst].map(|part| part * 100.0);
        println!(
            "| {number}: {title} | {world} | {over} | {largest:.2} | {mean:.1} % | {worst:.1} % |"
        );
    }
    println!("\n<!-- part: back -->\n");
    println!("| scenario | world | until | mean | worst seed |");
    println!("| --- | --- | --- | ---: | ---: |");
    for row in rows.iter().filter(|row| row.world != BAD) {
        let (what, seconds): (_, Vec<_>) = match row.number {
            3 => ("all is used again", row.used_after()),
            6 | 8 => ("shares are fair", row.fair_after()),
            _ => continue,
        };
        let mean = seconds.iter().sum::<usize>() as f64 / seconds.len() as f64;
        let worst = seconds.iter().max().copied().unwrap_or_default();
        let (number, title, world) = (row.number, title(row.number), row.world);
        println!("| {number}: {title} | {world} | {what} | {mean:.1} s | {worst} s |");
    }
    println!();
}

impl Row {
    fn over_grants(&self) -> u64 {
        self.seen.iter().map(|seen| seen.over_grants).sum()
    }

    fn largest(&self) -> f64 {
        self.seen.iter().map(|seen| seen.largest).fold(0.0, f64::max)
    }

    /// On average, and with the worst seed.
    fn usage(&self) -> (f64, f64) {
        let usage = self.seen.iter().map(|seen| seen.usage(START));
        let mean = usage.clone().sum::<f64>() / self.seen.len() as f64;
        (mean, usage.fold(f64::INFINITY, f64::min))
    }

    fn fair_after(&self) -> Vec<usize> {
        let never = || self.seen[0].samples.len();
        self.seen
            .iter()
            .map(|seen| seen.fair_after(SPIKE, FAIR).map_or_else(never, |after| after + 1))
            .collect()
    }

    fn used_after(&self) -> Vec<usize> {
        let never = || self.seen[0].samples.len();
        self.seen
            .iter()
            .map(|seen| seen.used_after(BACK, 0.97).map_or_else(never, |after| after + 1))
            .collect()
    }

    fn problems(&self) -> Vec<String> {
        let name = format!("scenario {}, {}", self.number, self.world);
        let mut problems = Vec::new();
        if self.over_grants() > 0 {
            problems.push(format!("{name}: {} was leased", self.largest()));
        }
        if self.seen.len() < ENOUGH {
            return problems;
        }
        let least = match self.world {
            // No lease lasts as long as the server is away.
            _ if self.number == 3 => 0.0,
            _ if self.number == 9 => SEVERAL_SERVERS,
            DOORMAN => 0.97,
            QUICK => 0.99,
            _ => 0.0,
        };
        let (mean, _) = self.usage();
        if mean < least {
            problems.push(format!("{name}: {mean:.4} is used, not {least}"));
        }
        // Who has too much learns of it at the next refresh, so the eighth takes longer with long intervals.
        let is_spike = matches!((self.number, self.world), (6, DOORMAN) | (6 | 8, QUICK));
        let fair = self.fair_after().into_iter().max().unwrap_or_default();
        if is_spike && fair > FAIR_WITHIN {
            problems.push(format!("{name}: shares are fair after {fair} s"));
        }
        problems
    }
}
