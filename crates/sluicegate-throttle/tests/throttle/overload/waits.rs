//! A queue for a time holds requests for that time, whatever the handlers do.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::ManualClock;
use sluicegate_throttle::Throttle;
use sluicegate_throttle::adaptive::Bandwidth;
use sluicegate_throttle::layer::ThrottleBuilder;
use tokio::sync::Semaphore;

use super::server::{Load, Report, Work, run};

const QUEUE: Duration = Duration::from_millis(200);

/// An eighth more than the queue, and what a simulated timer is late.
const LONGEST: Duration = Duration::from_millis(230);

/// Handlers that need 20 ms, of which eight run side by side: 400 in a second.
const WORK: Duration = Duration::from_millis(20);
const PLACES: usize = 8;
const CAPACITY: u64 = 400;

/// A download that takes longer than everything else.
const LONG: Duration = Duration::from_secs(6);

fn throttle(clock: &ManualClock, builder: ThrottleBuilder) -> Throttle {
    builder.queue(QUEUE).clock(clock).build().unwrap()
}

fn in_flight(clock: &ManualClock) -> Throttle {
    throttle(clock, Throttle::builder().in_flight(PLACES))
}

/// Handlers that wait for a pool of eight.
fn pool() -> impl Fn(Duration, u64) -> Work + 'static {
    let pool = Arc::new(Semaphore::new(PLACES));
    move |_, _| Work::Pool(Arc::clone(&pool), WORK)
}

fn assert_protected(report: &Report, load: Load, name: &str) {
    let capacity = CAPACITY * load.time.as_secs();
    let in_time = report.in_time() as u64;
    assert!(in_time * 100 >= capacity * 95, "{name}: {in_time} of {capacity}, {load:?}");
    assert!(report.longest_wait <= LONGEST, "{name}: {:?}, {load:?}", report.longest_wait);
}

/// One and a half, three and ten times the capacity, by clients that leave and by patient ones.
fn loads() -> impl Iterator<Item = Load> {
    let loads = [600, 1_200, 4_000].map(Load::new);
    let patient = |load: Load| Load { patience: Duration::from_secs(60), ..load };
    loads.into_iter().flat_map(move |load| [load, patient(load)])
}

#[test]
fn what_is_answered_in_time_is_the_capacity_whatever_the_load() {
    for load in loads() {
        let clock = ManualClock::new();
        let report = run(&clock, &in_flight(&clock), load, |_, _| Work::Sleep(WORK));
        assert_protected(&report, load, "sleeping");
        let report = run(&clock, &in_flight(&clock), load, pool());
        assert_protected(&report, load, "behind a pool");
        let report = run(&clock, &in_flight(&clock), load, |_, _| Work::Stream(WORK));
        assert_protected(&report, load, "streaming");
    }
}

/// On one thread a handler that computes keeps all others waiting, and 50 in a second are served, however many places
/// there are.
#[test]
fn places_of_handlers_that_keep_the_thread_busy_are_taken_by_those_that_can_be_served() {
    let builders: [fn() -> ThrottleBuilder; 4] = [
        || Throttle::builder().in_flight(1),
        || Throttle::builder().in_flight(PLACES),
        || Throttle::builder().in_flight(100),
        || Throttle::builder().adaptive(Bandwidth::default()),
    ];
    for builder in builders {
        for per_second in [75, 150, 500] {
            let load = Load { classes: [10, 30, 30, 30], ..Load::new(per_second) };
            let clock = ManualClock::new();
            let throttle = throttle(&clock, builder());
            let report = run(&clock, &throttle, load, |_, _| Work::Compute(WORK));
            let capacity = 50 * load.time.as_secs();
            let in_time = report.in_time() as u64;
            assert!(in_time * 100 >= capacity * 95, "{in_time} of {capacity}, {load:?}");
            // A handler that runs is not interrupted.
            let longest = report.longest_wait;
            assert!(longest <= LONGEST + 3 * WORK, "{longest:?}, {load:?}");
            let (critical, sent) = (report.answered[0].len() as u64, report.sent[0]);
            assert!(critical * 100 >= sent * 97, "{critical} of {sent}, {load:?}");
        }
    }
}

#[test]
fn an_adaptive_limit_answers_in_time_whatever_the_load() {
    for load in loads() {
        let clock = ManualClock::new();
        let adaptive = throttle(&clock, Throttle::builder().adaptive(Bandwidth::default()));
        assert_protected(&run(&clock, &adaptive, load, pool()), load, "Bandwidth");
    }
}

#[test]
fn a_rate_answers_in_time_whatever_the_load() {
    for load in loads() {
        let clock = ManualClock::new();
        let rate = throttle(&clock, Throttle::builder().requests_per_second(CAPACITY));
        assert_protected(&run(&clock, &rate, load, |_, _| Work::Sleep(WORK)), load, "rate");
    }
}

#[test]
fn of_a_crowd_that_comes_at_once_nobody_waits_for_longer_than_the_queue() {
    let crowd = Load {
        per_second: 2_000_000,
        time: Duration::from_millis(1),
        patience: Duration::from_secs(60),
        ..Load::new(0)
    };
    let time = Duration::from_millis(100);
    let builders = [
        (200, Throttle::builder().in_flight(100)),
        (40, Throttle::builder().adaptive(Bandwidth::default())),
        (40, Throttle::builder().requests_per_second(200)),
    ];
    for (least, builder) in builders {
        let clock = ManualClock::new();
        let report = run(&clock, &throttle(&clock, builder), crowd, move |_, _| Work::Sleep(time));
        assert_eq!(report.sent, [0, 0, 0, 2_000]);
        assert_eq!(report.in_time() + report.refused, 2_000);
        assert!(report.in_time() >= least, "{} of {least}", report.in_time());
        assert!(report.end <= LONGEST + time, "{:?}", report.end);
    }
}

#[test]
fn handlers_that_become_slow_make_nobody_wait_for_longer_and_are_forgotten() {
    for builder in [
        Throttle::builder().in_flight(PLACES),
        Throttle::builder().adaptive(Bandwidth::new(8, 8, 8)),
    ] {
        let clock = ManualClock::new();
        let throttle = throttle(&clock, builder);
        let load = Load { patience: Duration::from_secs(60), ..Load::new(3 * CAPACITY) };
        let usual = |_, _| Work::Sleep(WORK);
        assert_protected(&run(&clock, &throttle, load, usual), load, "before");
        let slow = Duration::from_secs(2);
        let report = run(&clock, &throttle, load, move |_, _| Work::Sleep(slow));
        assert!(report.longest_wait <= LONGEST, "{:?}", report.longest_wait);
        // At the start, and after two seconds.
        assert_eq!(report.in_time(), 2 * PLACES);
        assert_protected(&run(&clock, &throttle, load, usual), load, "after");
    }
}

#[test]
fn a_few_requests_that_hold_their_places_for_long_take_those_places_and_no_more() {
    let clock = ManualClock::new();
    let throttle = in_flight(&clock);
    let load = Load { patience: Duration::from_secs(60), ..Load::new(3 * CAPACITY) };
    let is_long = |number| [100, 500].contains(&number);
    let work = move |_, number| Work::Sleep(if is_long(number) { LONG } else { WORK });
    let report = run(&clock, &throttle, load, work);
    let capacity = CAPACITY * 6 / 8 * load.time.as_secs();
    assert!(report.in_time() as u64 * 100 >= capacity * 95, "{} of {capacity}", report.in_time());
    assert!(report.longest_wait <= LONGEST, "{:?}", report.longest_wait);
    assert_protected(&run(&clock, &throttle, load, |_, _| Work::Sleep(WORK)), load, "after");
}

#[test]
fn with_classes_the_capacity_is_used_and_the_most_critical_requests_get_theirs() {
    for builder in [
        Throttle::builder().in_flight(PLACES),
        Throttle::builder().adaptive(Bandwidth::default()),
        Throttle::builder().in_flight(PLACES).weights([8, 4, 2, 1]),
    ] {
        let clock = ManualClock::new();
        let load = Load { classes: [10, 30, 30, 30], ..Load::new(3 * CAPACITY) };
        let report = run(&clock, &throttle(&clock, builder), load, pool());
        assert_protected(&report, load, "four classes");
        let (critical, sent) = (report.answered[0].len() as u64, report.sent[0]);
        assert!(critical * 100 >= sent * 99, "{critical} of {sent}");
    }
}

/// Other queues, places, handlers and clients than those above.
#[test]
fn other_queues_and_other_places_are_kept_to_as_well() {
    let millis = Duration::from_millis;
    for (queue, places, time) in [(50, 4, 10), (200, 1, 10), (200, 100, 100), (1_000, 8, 20)] {
        for times in [3, 6, 20] {
            let capacity = places * 1_000 / time;
            let load =
                Load { patience: Duration::from_secs(60), ..Load::new(capacity * times / 2) };
            let clock = ManualClock::new();
            let builder = Throttle::builder().in_flight(places as usize).queue(millis(queue));
            let throttle = builder.clock(&clock).build().unwrap();
            // Half of them take half as long, and half of them half as long again.
            let work = move |_, number: u64| {
                Work::Sleep(millis(time) / 2 * if number % 2 == 0 { 1 } else { 3 })
            };
            let report = run(&clock, &throttle, load, work);
            let (in_time, most) = (report.in_time() as u64, capacity * load.time.as_secs());
            let case = format!("{queue} ms, {places} places of {time} ms, {times} halves");
            assert!(in_time * 100 >= most * 95, "{case}: {in_time} of {most}");
            let longest = report.longest_wait;
            assert!(longest <= millis(queue + queue / 8) + millis(5), "{case}: {longest:?}");
        }
    }
}
