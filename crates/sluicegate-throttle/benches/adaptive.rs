//! Adaptive concurrency on a simulated server: see `tests/adaptive/simulation.rs`.
//!
//! `cargo bench -p sluicegate-throttle --bench adaptive`

#[path = "../tests/adaptive/simulation.rs"]
mod simulation;

use std::time::Duration;

use simulation::{Setting, Simulation};
use sluicegate_throttle::adaptive::{Aimd, Algorithm, Bandwidth, Gradient2, Vegas};

const SERVICE: Duration = Duration::from_millis(20);

fn main() {
    println!(
        "                half the capacity, after 5 s (best: 10)   an hour at 1.2 times (best: 20)"
    );
    println!(
        "                mean limit  p99 against unloaded          mean limit  highest  throughput"
    );
    show("Bandwidth", Bandwidth::default);
    show("Vegas", Vegas::default);
    show("Gradient2", Gradient2::default);
    show("AIMD", Aimd::default);
}

fn show<A: Algorithm + 'static>(name: &str, algorithm: impl Fn() -> A) {
    let mut simulation = Simulation::new(1, algorithm());
    let whole = Setting::new(20.0, SERVICE, 1.2);
    simulation.run(whole, Duration::from_secs(30));
    let half = Setting { cores: 10.0, ..whole };
    simulation.run(half, Duration::from_secs(5));
    let mut halved = simulation.run(half, Duration::from_secs(5));
    let p99 = halved.p99() / (1.5 * half.service);

    let mut simulation = Simulation::new(1, algorithm());
    let setting = Setting::new(20.0, SERVICE, 1.2);
    simulation.run(setting, Duration::from_secs(60));
    let hour = simulation.run(setting, Duration::from_secs(3_600));
    let throughput = hour.ended as f64 / 3_600.0 / 1_000.0;
    println!(
        "{name:<15} {:>10.1}  {p99:>20.2}          {:>10.1}  {:>7}  {throughput:>10.3}",
        halved.mean_limit, hour.mean_limit, hour.max_limit
    );
}
