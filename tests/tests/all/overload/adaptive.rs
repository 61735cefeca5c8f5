//! The default algorithm for adaptive concurrency, on a simulated server.
//!
//! `cargo xtask bench overload` prints Vegas, Gradient2 and AIMD beside it.

use std::time::Duration;

use sluicegate_tests::overload::adaptive::{Setting, Simulation};
use sluicegate_throttle::adaptive::Bandwidth;

const SERVICE: Duration = Duration::from_millis(20);

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

#[test]
fn when_capacity_halves_the_limit_follows_within_five_seconds() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(seed, Bandwidth::default());
        let whole = Setting::new(20.0, SERVICE, 1.2);
        simulation.run(whole, Duration::from_secs(30));
        let half = Setting { cores: 10.0, ..whole };
        simulation.run(half, Duration::from_secs(5));
        let mut seen = simulation.run(half, Duration::from_secs(5));
        assert!((7.5..=12.5).contains(&seen.mean_limit), "{}", seen.mean_limit);
        // Without any load, the 99th percentile is one and a half times the mean.
        let unloaded = 1.5 * half.service;
        assert!(seen.p99() <= 2.0 * unloaded, "{}", seen.p99());
    }
}

#[test]
fn an_overload_that_lasts_for_an_hour_does_not_drive_the_limit_up() {
    for seed in [1, 2] {
        let mut simulation = Simulation::new(seed, Bandwidth::default());
        let setting = Setting::new(20.0, 10 * SERVICE, 1.2);
        simulation.run(setting, Duration::from_secs(60));
        let seen = simulation.run(setting, Duration::from_secs(3_600));
        assert!(seen.max_limit <= 26, "{} of 20", seen.max_limit);
        let throughput = seen.ended as f64 / 3_600.0;
        assert!(throughput >= 0.95 * 100.0, "{throughput} of 100 in a second");
    }
}

#[test]
fn below_half_the_load_nothing_is_shed_in_a_million_requests() {
    let mut simulation = Simulation::new(1, Bandwidth::default());
    let setting = Setting::new(50.0, SERVICE, 0.5);
    let seen = simulation.run(setting, Duration::from_secs(805));
    assert!(seen.offered > 1_000_000);
    assert_eq!(seen.shed, 0);
}

#[test]
fn a_limit_that_is_too_low_grows() {
    let mut simulation = Simulation::new(1, Bandwidth::new(2, 2, 1_000));
    let setting = Setting::new(50.0, SERVICE, 1.2);
    simulation.run(setting, Duration::from_secs(20));
    let seen = simulation.run(setting, Duration::from_secs(5));
    assert!((40.0..=60.0).contains(&seen.mean_limit), "{}", seen.mean_limit);
}
