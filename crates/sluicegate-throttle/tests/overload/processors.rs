//! A share of the processors is a share of those that the server's threads can keep busy.

use std::time::Duration;

use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;

use crate::server::{Load, Work, run};

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
