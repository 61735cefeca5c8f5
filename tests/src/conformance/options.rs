//! The options of a limit beyond its rate.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, fields};
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND, TICK};
use crate::{Subject, key};

/// Two a minute. The attempt refused at 50 s keeps the next one out.
pub fn refused_attempts_count_if_the_limit_says_so(subject: &Subject<impl Store>) {
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

/// Refused until the ban has passed, counted from the moment at which there would have been room.
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

/// When there will be room is unknown, but it is not before the ban or the gap is over.
pub fn a_ban_or_a_gap_is_told_where_only_giving_back_makes_room(subject: &Subject<impl Store>) {
    let limit = Limit::concurrent(2).ban(MINUTE * 10).named("banned");
    if subject.keeps(limit) {
        assert!(subject.spend(limit, "alice", 2).is_admitted());
        let refused = subject.spend(limit, "alice", 1);
        assert_eq!((refused.is_banned(), refused.retry_after()), (true, None));
        assert_eq!(fields::retry_after(&refused), 600);
        subject.pass(MINUTE * 4);
        assert_eq!(fields::retry_after(&subject.spend(limit, "alice", 1)), 360);
    }
    let limit = Limit::concurrent(1).min_gap(MINUTE).named("apart");
    if subject.keeps(limit) {
        assert!(subject.spend(limit, "alice", 1).is_admitted());
        assert_eq!(fields::retry_after(&subject.spend(limit, "alice", 1)), 60);
    }
}

/// The ban begins with the third refusal within a minute of the first. What is refused during the ban does not count.
pub fn a_ban_begins_after_some_refusals_if_the_limit_says_so(subject: &Subject<impl Store>) {
    let shapes = [Limit::per_minute(60).burst(2), Limit::sliding_log(2, SECOND * 2)];
    for limit in shapes.map(|limit| limit.ban(MINUTE * 10).ban_after(3, MINUTE)) {
        if !subject.keeps(limit) {
            continue;
        }
        assert!(subject.spend(limit, "alice", 2).is_admitted());
        let is_banned = || subject.spend(limit, "alice", 1).is_banned();
        assert_eq!([is_banned(), is_banned()], [false, false], "{limit}");
        // Too late to count together with those.
        subject.pass(MINUTE);
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
        assert_eq!([is_banned(), is_banned(), is_banned()], [false, false, true], "{limit}");
        subject.pass(MINUTE * 5);
        assert!(is_banned(), "{limit}");
        subject.pass(MINUTE * 6);
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
        assert!(!is_banned(), "{limit}");
    }
}

/// From there on, requests are admitted with a warning.
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

/// A shadow limit reports what it would refuse. The other limit is decided as if the shadow were absent.
pub fn a_shadow_refuses_nothing_and_tells_what_it_would(subject: &Subject<impl Store>) {
    for trial in super::shapes(2).map(Limit::shadow) {
        if !subject.keeps(trial) {
            continue;
        }
        let told = [(); 4].map(|()| subject.spend(trial, "alice", 1));
        assert!(told.iter().all(|told| told.is_admitted() && told.wait().is_zero()), "{trial}");
        assert_eq!(told.map(|told| told.is_shadowed()), [false, false, true, true], "{trial}");
        assert!(subject.peek(&Charge::of(trial, key("alice"), 1)).is_shadowed(), "{trial}");

        let mut both = Charge::of(trial, key("bob"), 1);
        both.add(Limit::per_minute(3).named("real"), key("bob"), 1).expect("two limits");
        let told = [(); 4].map(|()| subject.take(&both));
        let admitted = told.each_ref().map(|told| told.is_admitted());
        assert_eq!(admitted, [true, true, true, false], "{trial}");
        let shadowed = told.each_ref().map(|told| told.is_shadowed());
        assert_eq!(shadowed, [false, false, true, true], "{trial}");
        // What was not charged is not given back.
        subject.settle(&both, &told[2], |_| 0);
        assert!(subject.peek(&both).is_admitted(), "{trial}");
        assert!(subject.peek(&both).is_shadowed(), "{trial}");
        subject.reset(&both);
        subject.settle(&both, &told[0], |_| 0);
        subject.settle(&both, &told[1], |_| 0);
    }
}

/// Whatever the requests cost, and however much of the limit is left.
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
