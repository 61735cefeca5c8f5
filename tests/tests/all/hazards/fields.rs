//! What the client is told.

use sluicegate_core::Limit;
use sluicegate_core::adapter::fields;

use super::*;

/// Rounded down, the field is 0, and the client comes back at once, in vain.
#[test]
fn retry_after_rounded_down() {
    let limits = [
        Limit::per_second(3),
        Limit::per_minute(7),
        Limit::per_second(1_000),
        Limit::fixed_window(2, Duration::from_millis(1_500)),
        Limit::sliding_log(2, Duration::from_millis(2_300)),
        Limit::sliding_window(5, SECOND * 3),
    ];
    for limit in limits {
        let subject = memory();
        for _ in 0..50 {
            subject.pass(Duration::from_micros(123_457));
            while subject.admits(limit, "alice") {}
            let seconds = fields::retry_after(&subject.spend(limit, "alice", 1));
            assert!(seconds >= 1, "{limit}");
            subject.pass(SECOND * seconds as u32);
            assert!(subject.admits(limit, "alice"), "{limit}: after {seconds} s");
        }
    }
}

/// A client that obeys one of the two fields is not refused because of the other.
#[test]
fn retry_after_ends_before_the_window() {
    let subject = memory();
    let limit = Limit::per_minute(60).burst(10);
    subject.spend(limit, "alice", 10);
    let decision = subject.spend(limit, "alice", 5);
    assert_eq!(fields::retry_after(&decision), 5);
    assert_eq!(fields::rate_limit(&decision), r#""60/minute";r=0;t=1"#);
}
