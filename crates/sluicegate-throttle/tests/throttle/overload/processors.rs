//! A share of the processors is a share of those that the server's threads can keep busy.

use std::time::Duration;

use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;

use super::server::{Load, Work, run};

const WORK: Duration = Duration::from_millis(2);

/// 80 % of one processor, in handlers of 2 ms.
const CAPACITY: u64 = 400;

fn throttle(clock: &ManualClock) -> Throttle {
    let builder = Throttle::builder().cpu(0.8).queue(Duration::from_millis(200));
    builder.clock(clock).build().unwrap()
}

/// However many processors the machine has: before, it was a share of all of them, and nothing was ever shed.
#[test]
fn a_runtime_of_one_thread_is_protected_on_a_machine_of_many_processors() {
    for load in [600, 1_200, 4_000].map(Load::new) {
        let clock = ManualClock::new();
        let throttle = throttle(&clock);
        let report = run(&clock, &throttle, load, |_, _| Work::Compute(WORK));
        let capacity = CAPACITY * load.time.as_secs();
        let in_time = report.in_time() as u64;
        assert!(in_time * 100 >= capacity * 95, "{in_time} of {capacity}, {load:?}");
        let longest = report.longest_wait;
        assert!(longest <= Duration::from_millis(230), "{longest:?}, {load:?}");
        assert_eq!(throttle.snapshot().cost_per_second, Some(800_000.0));
    }
}

#[test]
fn its_most_critical_requests_are_answered_at_three_times_the_load() {
    let clock = ManualClock::new();
    let load = Load { classes: [10, 30, 30, 30], ..Load::new(1_500) };
    let report = run(&clock, &throttle(&clock), load, |_, _| Work::Compute(WORK));
    assert_eq!(report.answered[0].len() as u64, report.sent[0]);
    let capacity = CAPACITY * load.time.as_secs();
    let in_time = report.in_time() as u64;
    assert!(in_time * 100 >= capacity * 95, "{in_time} of {capacity}");
}

/// One of twenty requests takes a hundred times as long as the others, and keeps the only thread busy meanwhile.
#[test]
fn a_few_dear_requests_among_cheap_ones_cost_no_more_than_they_take() {
    let clock = ManualClock::new();
    let throttle = throttle(&clock);
    let load = Load { patience: Duration::from_secs(1), ..Load::new(1_600) };
    let report = run(&clock, &throttle, load, |_, number| match number.wrapping_mul(37) % 20 {
        0 => Work::Compute(Duration::from_millis(20)),
        _ => Work::Compute(Duration::from_micros(200)),
    });
    // 1.19 ms on average, of 0.8 of a second in each second.
    let capacity = 672 * load.time.as_secs();
    let in_time = report.in_time() as u64;
    assert!(in_time * 100 >= capacity * 95, "{in_time} of {capacity}");
}

/// The setting that the first page shows.
fn documented(clock: &ManualClock) -> Throttle {
    let shown = "Throttle::builder().cpu(1.0).queue(Duration::from_millis(200)).build()";
    assert!(include_str!("../../../README.md").contains(shown));
    let builder = Throttle::builder().cpu(1.0).queue(Duration::from_millis(200));
    builder.clock(clock).build().unwrap()
}

/// The server of `docs/benchmarks/overload.md`: of five requests, four need 1 ms and one needs 20 ms, in an order without a
/// pattern. Requests come at an even pace, and the server needs a while to read each of them. Returns the part of each
/// class's requests that was answered in time.
fn mixed(throttle: &Throttle, clock: &ManualClock, times: f64, reading: Duration) -> [f64; 4] {
    let load = Load {
        classes: [10, 30, 30, 30],
        patience: Duration::from_secs(1),
        time: Duration::from_secs(10),
        reading,
        ..Load::new((times * 1e6 / (4_800.0 + reading.as_micros() as f64)) as u64)
    };
    let report = run(clock, throttle, load, |_, number| {
        let random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        Work::Compute(Duration::from_millis(if random % 5 == 0 { 20 } else { 1 }))
    });
    // What runs is not interrupted.
    let longest = report.longest_wait;
    assert!(longest <= Duration::from_millis(225 + 3 * 20), "{longest:?} at {times}");
    [0, 1, 2, 3].map(|class| report.answered[class].len() as f64 / report.sent[class] as f64)
}

#[test]
fn the_documented_share_costs_a_healthy_server_nothing() {
    for (load, reading) in [(0.5, 0), (0.8, 0), (0.8, 100), (0.9, 0), (0.9, 100), (0.9, 500)] {
        let clock = ManualClock::new();
        let served = mixed(&documented(&clock), &clock, load, Duration::from_micros(reading));
        eprintln!("{served:?} at {load} with {reading}");
        assert!(served.iter().all(|part| *part >= 0.99), "{served:?} at {load} with {reading}");
    }
}

/// What the table of the benchmark says, less the time in which requests are read.
#[test]
fn with_the_documented_share_critical_requests_are_answered_under_any_load() {
    for (load, reading, least) in [
        (2.0, 0, [0.999, 0.98]),
        (2.0, 100, [0.999, 0.98]),
        (10.0, 0, [0.97, 0.0]),
        (10.0, 50, [0.87, 0.0]),
    ] {
        let clock = ManualClock::new();
        let served = mixed(&documented(&clock), &clock, load, Duration::from_micros(reading));
        eprintln!("{served:?} at {load} with {reading}");
        assert!(
            served[0] >= least[0] && served[1] >= least[1],
            "{served:?} at {load} with {reading}"
        );
    }
}
