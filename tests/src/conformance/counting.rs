//! How much is admitted.

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, shapes};
use crate::{Subject, key};

/// Off by one is the most common bug.
pub fn counts_exactly_to_the_limit(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        for left in (0..5).rev() {
            let decision = subject.spend(limit, "alice", 1);
            assert!(decision.is_admitted(), "{limit}");
            assert_eq!(decision.remaining(), Some(left), "{limit}");
        }
        for _ in 0..3 {
            let decision = subject.spend(limit, "alice", 1);
            assert!(!decision.is_admitted(), "{limit}");
            assert_eq!(decision.remaining(), Some(0), "{limit}");
        }
    }
}

/// Requests of one key cost other keys nothing.
pub fn keys_are_apart(subject: &Subject<impl Store>) {
    for limit in shapes(2).filter(|limit| subject.keeps(*limit)) {
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
        assert!(subject.spend(limit, "bob", 2).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "bob"), "{limit}");
    }
}

/// Two limits on one key have separate counts.
pub fn limits_on_one_key_are_apart(subject: &Subject<impl Store>) {
    let (ten, five) = (Limit::per_minute(10), Limit::per_minute(5));
    let named = Limit::per_minute(5).named("other");
    if ![ten, five, named].iter().all(|limit| subject.keeps(*limit)) {
        return;
    }
    assert!(subject.spend(ten, "alice", 10).is_admitted());
    assert!(subject.spend(five, "alice", 5).is_admitted());
    assert!(subject.spend(named, "alice", 5).is_admitted());
    assert!(![ten, five, named].iter().any(|limit| subject.admits(*limit, "alice")));
}

/// A quota that is changed keeps what was spent.
pub fn limits_with_one_name_and_algorithm_share_their_count(subject: &Subject<impl Store>) {
    let changed = [
        (Limit::sliding_log(10, MINUTE), Limit::sliding_log(15, MINUTE)),
        (Limit::sliding_window(10, MINUTE), Limit::sliding_window(15, MINUTE)),
        (Limit::per_minute(10), Limit::per_minute(10).burst(15)),
        (Limit::concurrent(10), Limit::concurrent(15)),
    ];
    for (before, after) in changed.map(|(a, b)| (a.named("quota"), b.named("quota"))) {
        if subject.keeps(before) && subject.keeps(after) {
            assert!(subject.spend(before, "alice", 10).is_admitted(), "{before}");
            assert!(subject.spend(after, "alice", 5).is_admitted(), "{after}");
            assert!(!subject.admits(after, "alice"), "{after}");
        }
    }
}

/// A request may cost more than one, or nothing.
pub fn a_cost_counts_like_that_many_requests(subject: &Subject<impl Store>) {
    for limit in shapes(10).filter(|limit| subject.keeps(*limit)) {
        assert_eq!(subject.spend(limit, "alice", 7).remaining(), Some(3), "{limit}");
        assert!(!subject.spend(limit, "alice", 4).is_admitted(), "{limit}");
        assert_eq!(subject.spend(limit, "alice", 0).remaining(), Some(3), "{limit}");
        assert_eq!(subject.spend(limit, "alice", 3).remaining(), Some(0), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// A cost that can never be met does not wrap around, however large it is.
pub fn a_cost_above_the_capacity_is_refused_for_good(subject: &Subject<impl Store>) {
    for limit in shapes(10).filter(|limit| subject.keeps(*limit)) {
        for cost in [11, 5_124_097, 1 << 53, u64::MAX] {
            let decision = subject.spend(limit, "alice", cost);
            assert!(!decision.is_admitted(), "{limit}, {cost}");
            assert_eq!(decision.retry_after(), None, "{limit}, {cost}");
            assert!(decision.never_fits(), "{limit}, {cost}: waiting does not help");
        }
        assert_eq!(subject.remaining(limit, "alice"), 10, "{limit}");
    }
}

/// Two rules may charge the same limit on the same key.
pub fn a_row_with_two_debits_is_charged_twice(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let mut charge = Charge::of(limit, key("alice"), 1);
        charge.add(limit, key("alice"), 2).expect("the same limit");
        assert!(subject.take(&charge).is_admitted(), "{limit}");
        assert!(!subject.take(&charge).is_admitted(), "{limit}");
        assert_eq!(subject.remaining(limit, "alice"), 2, "{limit}");
    }
}

/// A peek is free, and answers what a take would.
pub fn a_peek_spends_nothing(subject: &Subject<impl Store>) {
    for limit in shapes(2).filter(|limit| subject.keeps(*limit)) {
        let charge = Charge::of(limit, key("alice"), 1);
        for _ in 0..5 {
            assert!(subject.peek(&charge).is_admitted(), "{limit}");
        }
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
        let peeked = subject.peek(&charge);
        let taken = subject.take(&charge);
        assert!(!peeked.is_admitted(), "{limit}");
        assert_eq!(peeked.retry_after(), taken.retry_after(), "{limit}");
    }
}

/// Peeking at a key is not an error, and makes no row.
pub fn an_unknown_key_is_fresh(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let decision = subject.peek(&Charge::of(limit, key("unknown"), 1));
        assert!(decision.is_admitted(), "{limit}");
        assert_eq!(decision.remaining(), Some(5), "{limit}");
        assert!(decision.wait().is_zero(), "{limit}");
        assert_eq!(subject.remaining(limit, "unknown"), 5, "{limit}");
    }
}

/// An operator can clear the account of one customer without touching others. Held places stay held, because their
/// holders still run.
pub fn a_reset_forgets_what_was_spent(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        subject.spend(limit, "alice", 5);
        if limit.is_held() {
            let charge = Charge::of(limit, key("alice"), 1);
            assert_eq!(subject.reset(&charge).remaining(), Some(0), "{limit}");
            continue;
        }
        subject.spend(limit, "bob", 5);
        let charge = Charge::of(limit, key("alice"), 1);
        assert_eq!(subject.reset(&charge).remaining(), Some(5), "{limit}");
        assert!(subject.spend(limit, "alice", 5).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
        assert!(!subject.admits(limit, "bob"), "{limit}");
    }
}

/// An exempt request is charged nothing, which is not an error.
pub fn a_request_without_charges_is_admitted(subject: &Subject<impl Store>) {
    let decision = subject.take(&Charge::new());
    assert!(decision.is_admitted());
    assert_eq!(decision.remaining(), None);
    assert_eq!(decision.statuses().count(), 0);
    assert!(subject.peek(&Charge::new()).is_admitted());
}
