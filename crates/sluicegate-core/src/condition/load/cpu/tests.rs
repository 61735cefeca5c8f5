use std::time::Duration;

use super::*;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A time in microseconds.
const fn at(millis: u64) -> u64 {
    millis * 1_000
}

fn share(meter: &Meter, now: u64, used: Duration) -> f64 {
    meter.share(now, || used).into()
}

fn not_asked() -> Duration {
    panic!("the system was asked within the interval")
}

#[test]
fn it_is_what_was_used_of_what_could_have_been() {
    let meter = Meter::new(at(5_000), millis(700), 1);
    assert_eq!(share(&meter, at(5_100), millis(750)), 0.5);
    assert_eq!(share(&meter, at(5_300), millis(950)), 1.0);
    assert_eq!(share(&meter, at(6_300), millis(1_200)), 0.25);
}

#[test]
fn several_processors_are_one_whole() {
    let meter = Meter::new(at(0), millis(0), 4);
    assert_eq!(share(&meter, at(100), millis(100)), 0.25);
    assert_eq!(share(&meter, at(200), millis(500)), 1.0);
}

#[test]
fn within_the_interval_nobody_measures() {
    let meter = Meter::new(at(0), millis(0), 1);
    assert_eq!(f64::from(meter.share(at(99), not_asked)), 0.0);
    assert_eq!(share(&meter, at(100), millis(60)), 0.6);
    assert_eq!(f64::from(meter.share(at(199), not_asked)), 0.6);
    assert_eq!(share(&meter, at(200), millis(60)), 0.0);
}

#[test]
fn a_clock_that_is_a_little_behind_does_not_measure() {
    let meter = Meter::new(at(1_000), millis(0), 1);
    assert_eq!(share(&meter, at(1_100), millis(60)), 0.6);
    assert_eq!(f64::from(meter.share(at(1_099), not_asked)), 0.6);
}

#[test]
fn counts_that_go_round_are_measured_on() {
    // A moment before both counts of 32 bits are full.
    let round = u64::from(u32::MAX) / 10;
    let meter = Meter::new(at(round), millis(round), 1);
    assert_eq!(share(&meter, at(round + 200), millis(round + 100)), 0.5);
    assert_eq!(share(&meter, at(round + 300), millis(round + 130)), 0.3);
}

#[test]
fn more_than_all_is_all() {
    // A quota that lets a process use more for a moment than it is to have.
    let meter = Meter::new(at(0), millis(0), 1);
    assert_eq!(share(&meter, at(100), millis(300)), 1.0);
}

#[test]
fn one_of_many_who_measure_at_once_has_measured_for_all() {
    let meter = Meter::new(at(0), millis(0), 1);
    let slow = meter.share(at(100), || {
        // Another comes in between this one's look and its writing.
        assert_eq!(share(&meter, at(100), millis(40)), 0.4);
        millis(50)
    });
    assert_eq!(f64::from(slow), 0.5);
    assert_eq!(f64::from(meter.share(at(150), not_asked)), 0.4);
}

#[test]
fn what_is_no_share_is_named() {
    for wrong in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY, -1e-320, f64::MAX] {
        let error = Cpu::below(wrong).unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{wrong:?}` is no share")), "{error}");
        assert!(!error.is_unsupported());
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_process_that_works_is_seen_to_work() {
    let cpu = Cpu::below(1.0).unwrap();
    let process = cpu.process;
    let start = process.clock.now();
    let before = used().unwrap();
    // Work, for as long as it takes the meter to see it, which is an interval.
    let (mut sum, mut share) = (0_u64, 0.0);
    while process.clock.now() < start + 10_000_000 && share == 0.0 {
        share = cpu.share();
        sum = (0..10_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
    }
    assert!(used().unwrap() > before);
    assert!(share > 0.0, "{sum}");
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[test]
fn where_the_system_does_not_tell_it_cannot_be_made() {
    assert!(Cpu::below(0.5).unwrap_err().is_unsupported());
}
