//! How much is admitted.

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, shapes};
use crate::{Subject, key};

/// Off by one is the commonest bug of all.
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

/// One key's requests cost no other key anything.
pub fn keys_are_apart(subject: &Subject<impl Store>) {
    for limit in shapes(2).filter(|limit| subject.keeps(*limit)) {
        assert!(subject.spend(limit, "alice", 2).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
        assert!(subject.spend(limit, "bob", 2).is_admitted(), "{limit}");
        assert!(!subject.admits(limit, "bob"), "{limit}");
    }
}

/// Two limits on one key have a count each.
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

/// A quota that is changed keeps what was spent of it.
pub fn limits_of_one_name_and_shape_share_their_count(subject: &Subject<impl Store>) {
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
pub fn a_cost_counts_as_that_many(subject: &Subject<impl Store>) {
    for limit in shapes(10).filter(|limit| subject.keeps(*limit)) {
        assert_eq!(subject.spend(limit, "alice", 7).remaining(), Some(3), "{limit}");
        assert!(!subject.spend(limit, "alice", 4).is_admitted(), "{limit}");
        assert_eq!(subject.spend(limit, "alice", 0).remaining(), Some(3), "{limit}");
        assert_eq!(subject.spend(limit, "alice", 3).remaining(), Some(0), "{limit}");
        assert!(!subject.admits(limit, "alice"), "{limit}");
    }
}

/// However large, a cost that can never be met does not wrap around.
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

/// Two rules may owe to the same limit on the same key.
pub fn a_row_that_is_owed_twice_is_charged_twice(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let mut charge = Charge::of(limit, key("alice"), 1);
        charge.add(limit, key("alice"), 2).expect("the same limit");
        assert!(subject.take(&charge).is_admitted(), "{limit}");
        assert!(!subject.take(&charge).is_admitted(), "{limit}");
        assert_eq!(subject.remaining(limit, "alice"), 2, "{limit}");
    }
}

/// Looking is free, and tells what taking would.
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

/// Asking about a key is not an error, and makes none.
pub fn a_key_that_nobody_has_met_is_fresh(subject: &Subject<impl Store>) {
    for limit in shapes(5).filter(|limit| subject.keeps(*limit)) {
        let decision = subject.peek(&Charge::of(limit, key("nobody"), 1));
        assert!(decision.is_admitted(), "{limit}");
        assert_eq!(decision.remaining(), Some(5), "{limit}");
        assert!(decision.wait().is_zero(), "{limit}");
        assert_eq!(subject.remaining(limit, "nobody"), 5, "{limit}");
    }
}

/// An operator can clear a customer's account, and nobody else's with it. What is held stays held:
/// whoever holds it is still there.
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

/// An exempt request owes nothing, which is no error.
pub fn who_owes_nothing_is_admitted(subject: &Subject<impl Store>) {
    let decision = subject.take(&Charge::new());
    assert!(decision.is_admitted());
    assert_eq!(decision.remaining(), None);
    assert_eq!(decision.statuses().count(), 0);
    assert!(subject.peek(&Charge::new()).is_admitted());
}
