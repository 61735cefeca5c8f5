//! Carrying over what was spent when the numbers of a limit change.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND};
use crate::Subject;
use crate::subject::key;

/// Every algorithm twice, with one name and different numbers. Logs with two periods have rows of their own: the
/// shorter period would drop stamps that the longer one still counts.
fn changes() -> impl Iterator<Item = [Limit; 2]> {
    let plans = [
        [Limit::per_minute(6), Limit::per_minute(60)],
        [Limit::per_minute(6).refill(6, MINUTE), Limit::per_minute(60).refill(60, MINUTE)],
        [
            Limit::leaky_bucket(6, MINUTE).queue(5).delay_after(5),
            Limit::leaky_bucket(60, MINUTE).queue(59).delay_after(59),
        ],
        [Limit::fixed_window(6, MINUTE), Limit::fixed_window(60, MINUTE)],
        [
            Limit::fixed_window(6, MINUTE).from_first(),
            Limit::fixed_window(60, MINUTE * 60).from_first(),
        ],
        [Limit::sliding_log(6, MINUTE), Limit::sliding_log(60, MINUTE)],
        [Limit::sliding_window(6, MINUTE), Limit::sliding_window(60, MINUTE * 60)],
        [Limit::concurrent(6), Limit::concurrent(60)],
    ];
    plans.into_iter().map(|plans| plans.map(|plan| plan.named("plan").carried()))
}

/// Changed to other numbers, and back.
pub fn what_was_spent_is_carried_over(subject: &Subject<impl Store>) {
    for [free, paid] in changes() {
        if !subject.keeps(free) {
            continue;
        }
        assert!(subject.spend(free, "alice", 4).is_admitted());
        assert_eq!(subject.remaining(paid, "alice"), 56, "{paid}");
        assert_eq!(subject.spend(paid, "alice", 1).remaining(), Some(55), "{paid}");
        assert_eq!(subject.spend(free, "alice", 1).remaining(), Some(0), "{free}");
        assert!(!subject.admits(free, "alice"), "{free}");
        assert_eq!(subject.spend(paid, "alice", 54).remaining(), Some(0), "{paid}");
        assert!(!subject.admits(free, "alice"), "{free}");
        assert_eq!(subject.remaining(paid, "alice"), 0, "{paid}");
        subject.reset(&Charge::of(free, key("alice"), 1));
    }
}

/// Token for token, including half a token.
pub fn a_debt_drains_at_the_old_rate_until_the_change(subject: &Subject<impl Store>) {
    let [slow, quick] =
        [Limit::per_minute(6), Limit::per_minute(60)].map(|plan| plan.named("plan").carried());
    if !subject.keeps(slow) {
        return;
    }
    assert!(subject.spend(slow, "alice", 6).is_admitted());
    subject.pass(SECOND * 15);
    let half = subject.spend(quick, "alice", 0);
    let status = half.statuses().next().expect("one limit");
    assert_eq!((status.remaining, status.window), (55, Some(Duration::from_millis(500))));
    subject.pass(SECOND / 2);
    assert_eq!(subject.remaining(quick, "alice"), 56);
}

/// No refund returns what other requests have spent.
pub fn what_was_charged_before_a_change_mints_nothing(subject: &Subject<impl Store>) {
    let plans = [
        [Limit::per(5, MINUTE * 60), Limit::per_second(5)],
        [Limit::fixed_window(5, MINUTE * 60), Limit::fixed_window(5, SECOND)],
        [Limit::sliding_window(5, MINUTE * 60), Limit::sliding_window(5, SECOND)],
        [Limit::sliding_log(5, MINUTE * 60), Limit::sliding_log(5, SECOND)],
    ];
    for [slow, quick] in plans.map(|plans| plans.map(|plan| plan.named("plan").carried())) {
        if !subject.keeps(slow) {
            continue;
        }
        let charge = Charge::of(slow, key("alice"), 3);
        let charged = subject.take(&charge);
        assert!(charged.is_admitted());
        assert!(subject.admits(quick, "alice"));
        subject.pass(SECOND * 3);
        assert!(subject.spend(quick, "alice", 4).is_admitted(), "{quick}");
        subject.settle(&charge, &charged, |_| 0);
        assert_eq!(subject.remaining(quick, "alice"), 1, "{quick}");
        subject.reset(&charge);
    }
}

/// What is held is always known.
pub fn what_was_charged_before_a_change_is_given_back(subject: &Subject<impl Store>) {
    for [free, paid] in changes() {
        let tells = free.is_held() || free.to_string().starts_with("log");
        if !tells || !subject.keeps(free) {
            continue;
        }
        let charge = Charge::of(free, key("alice"), 4);
        let charged = subject.take(&charge);
        assert!(subject.admits(paid, "alice"));
        subject.settle(&charge, &charged, |_| 0);
        assert_eq!(subject.remaining(paid, "alice"), 59, "{paid}");
        subject.reset(&charge);
        if free.is_held() {
            return;
        }
    }
}
