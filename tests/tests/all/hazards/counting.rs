//! Arithmetic, and threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_tests::key;

use super::*;

/// `n × interval` wraps, and an impossible request is admitted. Checked against 128-bit arithmetic.
#[test]
fn n_times_interval_wraps() {
    let subject = memory();
    let limit = Limit::per_hour(1).burst(100);
    let mut state = 88_172_645_463_325_252_u64;
    let random = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> (state % 64)
    });
    let chosen = [101, 5_124_097, u64::MAX / 3_600_000_000, u64::MAX / 3_600_000_000 + 1, u64::MAX];
    for cost in chosen.into_iter().chain(random.take(10_000)) {
        let fits = u128::from(cost) * 3_600_000_000 <= 100 * 3_600_000_000;
        let peeked = subject.peek(&Charge::of(limit, key("alice"), cost));
        assert_eq!(peeked.is_admitted(), fits, "{cost}");
    }
}

/// After a pause, a burst of ten becomes seventeen.
#[test]
fn burst_grows_after_idling() {
    let subject = memory();
    let limit = Limit::per_second(1).burst(10);
    let mut admitted = Vec::new();
    for idle in [0, 5, 17, 3_600, 86_400, 1, 9, 11] {
        subject.pass(SECOND * idle);
        for _ in 0..25 {
            if subject.admits(limit, "alice") {
                admitted.push(subject.clock.now() / 1_000_000);
            }
        }
    }
    // In no interval are more admitted than the burst and what has been refilled since.
    for (i, from) in admitted.iter().enumerate() {
        for (j, to) in admitted.iter().enumerate().skip(i) {
            assert!((j - i + 1) as u64 <= 10 + (to - from), "from {from} to {to}");
        }
    }
}

/// If the interval is truncated to whole nanoseconds, 700,000,000 a second become a thousand million. If it is
/// truncated to microseconds, 700,000 a second become 10^6.
#[test]
fn interval_truncated_to_a_whole_tick() {
    for count in [3, 7, 700_000, 999_983, 700_000_000] {
        let subject = memory();
        let limit = Limit::per_second(count);
        assert!(subject.spend(limit, "alice", count).is_admitted());
        let mut spent = 0;
        for _ in 0..1_000 {
            subject.pass(SECOND / 10);
            let remaining = subject.remaining(limit, "alice");
            assert!(subject.spend(limit, "alice", remaining).is_admitted());
            spent += remaining;
        }
        assert_eq!(spent, count * 100, "in a hundred seconds");
    }
}

/// Three a second for an hour are exactly 10,800, at whatever moments requests come.
#[test]
fn a_long_run_admits_exactly_the_rate() {
    let subject = memory();
    let limit = Limit::per_second(3);
    let (start, mut admitted) = (subject.clock.now(), 0_u64);
    for step in 0.. {
        subject.pass(Duration::from_micros(131_071 + step % 3));
        let passed = subject.clock.now() - start;
        if passed >= 3_600_000_000 {
            break;
        }
        admitted += u64::from(subject.admits(limit, "alice"));
        assert!(admitted <= 3 + passed * 3 / 1_000_000);
    }
    assert!((10_799..=10_803).contains(&admitted), "{admitted}");
}

/// `max + 1` requests are admitted.
#[test]
fn off_by_one() {
    for count in [1, 2, 5, 100] {
        let subject = memory();
        for limit in [
            Limit::per_minute(count),
            Limit::fixed_window(count, MINUTE),
            Limit::sliding_log(count, MINUTE),
            Limit::sliding_window(count, MINUTE),
            Limit::concurrent(count),
        ] {
            let admitted = (0..count + 5).filter(|_| subject.admits(limit, "alice")).count();
            assert_eq!(admitted as u64, count, "{limit}");
        }
    }
}

/// Another request comes between the check and the charge.
#[test]
fn check_then_act() {
    let subject = memory();
    let limit = Limit::per_hour(1_000);
    let (admitted, barrier) = (AtomicU64::new(0), Barrier::new(16));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                let mine = (0..200).filter(|_| subject.admits(limit, "alice")).count();
                admitted.fetch_add(mine as u64, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1_000);
}

/// The per-second limit has been charged for a request that the daily limit refused.
#[test]
fn earlier_limits_stay_charged_when_a_later_one_refuses() {
    let subject = memory();
    let (second, day) = (Limit::per_second(10), Limit::per_day(3));
    let mut both = Charge::of(second, key("alice"), 1);
    both.add(day, key("alice"), 1).expect("two limits");
    let admitted = (0..10).filter(|_| subject.take(&both).is_admitted()).count();
    assert_eq!(admitted, 3);
    assert_eq!(subject.remaining(second, "alice"), 7);
}

/// `per_second(60)` admits one request a minute.
#[test]
fn per_second_60_means_one_a_minute() {
    let subject = memory();
    let limit = Limit::per_second(60);
    assert!(subject.spend(limit, "alice", 60).is_admitted());
    assert!(!subject.admits(limit, "alice"));
    subject.pass(SECOND);
    assert!(subject.spend(limit, "alice", 60).is_admitted());
    assert_eq!("60/second".parse(), Ok(limit));
}

/// A window below a second becomes one of 0 s, which does not limit at all.
#[test]
fn sub_second_windows_become_0_s() {
    let subject = memory();
    let period = Duration::from_millis(100);
    for limit in [Limit::fixed_window(3, period), Limit::sliding_log(3, period)] {
        let mut admitted = 0;
        for _ in 0..1_000 {
            admitted += u64::from(subject.admits(limit, "alice"));
            subject.pass(Duration::from_millis(1));
        }
        assert_eq!(admitted, 30, "{limit}");
    }
}
