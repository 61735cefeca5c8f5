//! Several limits on one request.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND, TICK, shapes};
use crate::{Subject, key};

fn charge(debit: &[(Limit, &str)]) -> Charge {
    let mut charge = Charge::new();
    for (limit, name) in debit {
        charge.add(*limit, key(name), 1).expect("limits of different names");
    }
    charge
}

/// When one limit refuses, no other limit is charged, in either order.
pub fn charges_all_or_none_of_the_limits(subject: &Subject<impl Store>) {
    let wide = Limit::per_minute(100).named("wide");
    for tight in shapes(3).filter(|limit| subject.keeps(*limit) && subject.keeps(wide)) {
        subject.reset(&charge(&[(wide, "alice")]));
        for debit in [[(wide, "alice"), (tight, "alice")], [(tight, "bob"), (wide, "alice")]] {
            let before = subject.remaining(wide, "alice");
            for _ in 0..3 {
                assert!(subject.take(&charge(&debit)).is_admitted(), "{tight}");
            }
            for _ in 0..5 {
                assert!(!subject.take(&charge(&debit)).is_admitted(), "{tight}");
            }
            assert_eq!(subject.remaining(wide, "alice"), before - 3, "{tight}");
        }
    }
}

/// The same for several keys of one limit.
pub fn charges_all_or_none_of_the_keys(subject: &Subject<impl Store>) {
    for limit in shapes(3).filter(|limit| subject.keeps(*limit)) {
        subject.spend(limit, "spent", 3);
        let both = charge(&[(limit, "fresh"), (limit, "spent"), (limit, "other")]);
        assert!(!subject.take(&both).is_admitted(), "{limit}");
        assert_eq!(subject.remaining(limit, "fresh"), 3, "{limit}");
        assert_eq!(subject.remaining(limit, "other"), 3, "{limit}");
    }
}

/// The statuses are in the order of the rule, and say which limit refuses.
pub fn a_refusal_names_the_limits_that_refuse(subject: &Subject<impl Store>) {
    let (minute, hour) = (Limit::per_minute(2), Limit::per_hour(100));
    if !subject.keeps(minute) || !subject.keeps(hour) {
        return;
    }
    let both = charge(&[(hour, "alice"), (minute, "alice")]);
    subject.take(&both);
    subject.take(&both);
    let decision = subject.take(&both);
    let statuses: Vec<_> = decision.statuses().collect();
    assert_eq!([statuses[0].limit, statuses[1].limit], [hour, minute]);
    assert_eq!([statuses[0].refused, statuses[1].refused], [false, true]);
    assert_eq!([statuses[0].remaining, statuses[1].remaining], [98, 0]);
    assert_eq!(decision.retry_after(), Some(SECOND * 30));
}

/// It is the first moment at which all limits admit the request.
pub fn retry_after_satisfies_every_limit(subject: &Subject<impl Store>) {
    let limits = [
        Limit::fixed_window(2, SECOND * 2),
        Limit::fixed_window(3, SECOND * 10),
        Limit::per_minute(6),
    ];
    if !limits.iter().all(|limit| subject.keeps(*limit)) {
        return;
    }
    subject.pass(Duration::from_millis(700));
    let all = charge(&limits.map(|limit| (limit, "alice")));
    let (mut admitted, mut refused) = (0, 0);
    while admitted < 30 {
        let decision = subject.take(&all);
        let Some(retry_after) = decision.retry_after() else {
            admitted += 1;
            continue;
        };
        refused += 1;
        subject.pass(retry_after - TICK);
        assert!(!subject.take(&all).is_admitted(), "before {retry_after:?}");
        subject.pass(TICK);
        assert!(subject.peek(&all).is_admitted(), "after {retry_after:?}");
    }
    assert!(refused > 10);
}

/// Limits with large and small states are charged together.
pub fn limits_with_large_and_small_states_are_charged_together(subject: &Subject<impl Store>) {
    let (log, bucket) = (Limit::sliding_log(3, MINUTE), Limit::per_minute(5));
    let banning = Limit::per_hour(4).ban(SECOND);
    if ![log, bucket, banning].iter().all(|limit| subject.keeps(*limit)) {
        return;
    }
    let all = charge(&[(bucket, "alice"), (log, "alice"), (banning, "alice")]);
    let admitted = (0..10).filter(|_| subject.take(&all).is_admitted()).count();
    assert_eq!(admitted, 3);
    assert_eq!(subject.remaining(bucket, "alice"), 2);
    assert_eq!(subject.remaining(banning, "alice"), 1);
}

/// The largest number of limits that one request may have.
pub fn sixteen_limits_are_charged_together(subject: &Subject<impl Store>) {
    let limits: Vec<Limit> = (1..=16).map(|i| Limit::per_hour(10 + i)).collect();
    if !limits.iter().all(|limit| subject.keeps(*limit)) {
        return;
    }
    let debit: Vec<_> = limits.iter().map(|limit| (*limit, "alice")).collect();
    let all = charge(&debit);
    let admitted = (0..20).filter(|_| subject.take(&all).is_admitted()).count();
    assert_eq!(admitted, 11);
    for (limit, left) in limits.iter().zip(0..) {
        assert_eq!(subject.remaining(*limit, "alice"), left, "{limit}");
    }
}
