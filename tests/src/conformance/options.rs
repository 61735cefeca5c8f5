//! What can be said of a limit beyond its rate.

use std::time::Duration;

use tollgate_core::{Limit, Store};

use super::{MINUTE, SECOND, TICK};
use crate::Subject;

/// Two a minute; the attempt that was refused at 50 s is what keeps the next one out.
pub fn refused_attempts_count_where_that_is_asked_for(subject: &Subject<impl Store>) {
    let limit = Limit::sliding_log(2, MINUTE).count_refused();
    if subject.keeps(limit) {
        let mut at = 0;
        let attempts = [(1, true), (30, true), (50, false), (91, true), (100, false), (160, true)];
        for (second, admitted) in attempts {
            subject.pass(SECOND * (second - at));
            at = second;
            assert_eq!(subject.admits(limit, "alice"), admitted, "at {second} s");
        }
    }
    let limit = Limit::sliding_window(2, MINUTE).count_refused();
    if subject.keeps(limit) {
        assert!(subject.spend(limit, "bob", 2).is_admitted());
        let before = subject.spend(limit, "bob", 1).retry_after();
        let after = subject.spend(limit, "bob", 1).retry_after();
        assert!(after > before, "{after:?} after {before:?}");
    }
}

/// Refused until the ban has passed since the moment at which there would have been room.
pub fn a_ban_lasts_and_attempts_do_not_prolong_it(subject: &Subject<impl Store>) {
    let limit = Limit::per_minute(2).ban(MINUTE * 10);
    if !subject.keeps(limit) {
        return;
    }
    assert!(subject.spend(limit, "alice", 2).is_admitted());
    let refused = subject.spend(limit, "alice", 1);
    assert!(refused.is_banned());
    let banned = MINUTE * 10 + SECOND * 30;
    assert_eq!(refused.retry_after(), Some(banned));
    subject.pass(banned / 2);
    let again = subject.spend(limit, "alice", 1);
    assert!(again.is_banned());
    assert_eq!(again.remaining(), Some(0));
    assert_eq!(again.retry_after(), Some(banned / 2));
    subject.pass(banned / 2 - TICK);
    assert!(!subject.admits(limit, "alice"));
    subject.pass(TICK);
    assert!(subject.admits(limit, "alice"));
    assert!(subject.admits(limit, "bob"));
}

/// From there on requests are admitted with a warning.
pub fn a_soft_limit_warns(subject: &Subject<impl Store>) {
    let limit = Limit::per_minute(5).soft(3);
    if !subject.keeps(limit) {
        return;
    }
    for spent in 1..=5 {
        let decision = subject.spend(limit, "alice", 1);
        assert!(decision.is_admitted());
        assert_eq!(decision.is_soft(), spent > 3, "{spent} spent");
    }
}

/// Whatever they cost, and however much of the limit is left.
pub fn a_gap_is_kept_between_any_two(subject: &Subject<impl Store>) {
    let gap = Duration::from_millis(250);
    let limit = Limit::per_minute(100).min_gap(gap);
    if !subject.keeps(limit) {
        return;
    }
    assert!(subject.spend(limit, "alice", 5).is_admitted());
    let refused = subject.spend(limit, "alice", 1);
    assert_eq!(refused.retry_after(), Some(gap));
    subject.pass(gap - TICK);
    assert!(!subject.admits(limit, "alice"));
    subject.pass(TICK);
    assert!(subject.admits(limit, "alice"));
    assert!(!subject.admits(limit, "alice"));
}
