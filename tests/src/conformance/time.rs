//! When a request is admitted.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND, TICK, timed};
use crate::Subject;

/// A client that waits exactly `retry_after` is admitted; one tick earlier it is refused.
pub fn retry_after_is_exact(subject: &Subject<impl Store>) {
    for limit in timed(7).into_iter().filter(|limit| subject.keeps(*limit)) {
        // Not at the border of a window.
        subject.pass(Duration::from_micros(12_345_678));
        subject.spend(limit, "alice", 4);
        subject.pass(Duration::from_micros(1_234_567));
        subject.spend(limit, "alice", 3);
        let refused = subject.spend(limit, "alice", 2);
        let retry_after = refused.retry_after().expect("time alone makes room");
        subject.pass(retry_after - TICK);
        let early = subject.spend(limit, "alice", 2);
        assert!(!early.is_admitted(), "{limit}: admitted before {retry_after:?}");
        assert_eq!(early.retry_after(), Some(TICK), "{limit}");
        subject.pass(TICK);
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}: after {retry_after:?}");
    }
}

/// Until the announced window has passed, no more than `remaining` can be spent; afterwards more.
pub fn the_window_is_announced_exactly(subject: &Subject<impl Store>) {
    for limit in timed(7).into_iter().filter(|limit| subject.keeps(*limit)) {
        subject.pass(Duration::from_micros(12_345_678));
        let decision = subject.spend(limit, "alice", 5);
        let status = decision.statuses().next().expect("one limit");
        assert_eq!(status.remaining, 2, "{limit}");
        let window = status.window.expect("time alone makes room");
        subject.pass(window - TICK);
        assert_eq!(subject.remaining(limit, "alice"), 2, "{limit}");
        subject.pass(TICK);
        assert!(subject.remaining(limit, "alice") > 2, "{limit}");
    }
}

/// The interval of a rate is not rounded to whole ticks. No fraction is lost or gained, however long it runs.
pub fn three_a_second_are_three_a_second_for_ever(subject: &Subject<impl Store>) {
    let limit = Limit::per_second(3).burst(2);
    if !subject.keeps(limit) {
        return;
    }
    let start = subject.clock.now();
    assert!(subject.spend(limit, "alice", 2).is_admitted());
    for third in 1_u64..=1_000 {
        let refused = subject.spend(limit, "alice", 1);
        subject.pass(refused.retry_after().expect("time alone makes room"));
        assert_eq!(subject.clock.now() - start, (third * 1_000_000).div_ceil(3));
        assert!(subject.admits(limit, "alice"));
    }
}

/// A limiter that was idle is not more generous than a new one.
pub fn never_more_than_the_burst_however_long_the_idling(subject: &Subject<impl Store>) {
    for limit in timed(10).into_iter().filter(|limit| subject.keeps(*limit)) {
        for idle in [MINUTE, MINUTE * 7, MINUTE * 60 * 24 * 365] {
            assert!(subject.spend(limit, "alice", 10).is_admitted(), "{limit}");
            subject.pass(MINUTE * 2 + idle);
            assert_eq!(subject.remaining(limit, "alice"), 10, "{limit} after {idle:?}");
        }
        let admitted = (0..20).filter(|_| subject.admits(limit, "alice")).count();
        assert_eq!(admitted, 10, "{limit}");
        subject.pass(MINUTE * 3);
    }
}

/// At most twice the count around a border, which is the nature of the algorithm.
pub fn fixed_windows_end_at_the_border(subject: &Subject<impl Store>) {
    let limit = Limit::fixed_window(5, MINUTE);
    if !subject.keeps(limit) {
        return;
    }
    subject.pass(MINUTE - SECOND);
    assert!(subject.spend(limit, "alice", 5).is_admitted());
    assert_eq!(subject.spend(limit, "alice", 1).retry_after(), Some(SECOND));
    subject.pass(SECOND);
    assert!(subject.spend(limit, "alice", 5).is_admitted());
    assert_eq!(subject.spend(limit, "alice", 1).retry_after(), Some(MINUTE));
}

/// A window below one second does not become one of 0 s.
pub fn a_window_of_100_ms_is_one(subject: &Subject<impl Store>) {
    let period = Duration::from_millis(100);
    let limits = [
        Limit::fixed_window(2, period),
        Limit::sliding_log(2, period),
        Limit::fixed_window(2, period).from_first(),
    ];
    for limit in limits.into_iter().filter(|limit| subject.keeps(*limit)) {
        for _ in 0..5 {
            assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
            assert_eq!(subject.spend(limit, "alice", 1).retry_after(), Some(period), "{limit}");
            subject.pass(period - TICK);
            assert!(!subject.admits(limit, "alice"), "{limit}");
            subject.pass(TICK);
        }
    }
}

/// At exactly one period a place is free again.
pub fn no_interval_of_a_log_holds_more_than_the_count(subject: &Subject<impl Store>) {
    let limit = Limit::sliding_log(3, MINUTE);
    if !subject.keeps(limit) {
        return;
    }
    let mut admitted: Vec<u64> = Vec::new();
    for step in 0_u64..400 {
        subject.pass(Duration::from_micros(step * step * 7_919 % 23_000_000));
        let now = subject.clock.now();
        let within = admitted.iter().filter(|at| now - **at < 60_000_000).count();
        assert_eq!(subject.admits(limit, "alice"), within < 3, "at step {step}");
        if within < 3 {
            admitted.push(now);
        }
    }
    assert!(admitted.len() > 100);
}

/// 7 a minute, 5 in the previous one, 3 in this, 30 % into it: 3 + 5 × 0.7 = 6.5, so one more.
pub fn a_sliding_window_weighs_the_previous_one(subject: &Subject<impl Store>) {
    let limit = Limit::sliding_window(7, MINUTE);
    if !subject.keeps(limit) {
        return;
    }
    subject.spend(limit, "alice", 5);
    subject.pass(MINUTE + SECOND * 18);
    subject.spend(limit, "alice", 3);
    assert!(subject.admits(limit, "alice"));
    assert!(!subject.admits(limit, "alice"));
}

/// Setting the clock back gives no refill and no fresh window. It does not refuse either until the clock shows the
/// old time again.
pub fn a_clock_that_steps_back_neither_grants_nor_bans(subject: &Subject<impl Store>) {
    for limit in timed(5).into_iter().filter(|limit| subject.keeps(*limit)) {
        subject.pass(MINUTE * 10);
        let now = Duration::from_micros(subject.clock.now());
        assert!(subject.spend(limit, "alice", 5).is_admitted(), "{limit}");
        subject.clock.set(now - MINUTE * 60);
        let refused = subject.spend(limit, "alice", 1);
        let retry_after = refused.retry_after().expect("time alone makes room");
        assert!(TICK <= retry_after && retry_after <= MINUTE + TICK, "{limit}: {retry_after:?}");
        subject.pass(retry_after - TICK);
        assert!(!subject.admits(limit, "alice"), "{limit}");
        subject.pass(TICK);
        assert!(subject.admits(limit, "alice"), "{limit}");
        subject.clock.set(now);
    }
}
