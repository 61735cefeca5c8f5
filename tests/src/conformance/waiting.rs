//! Places booked ahead.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, SECOND, TICK};
use crate::{Subject, key};

/// One request a second, in every algorithm that can book a later place.
fn one_a_second() -> [Limit; 5] {
    [
        Limit::per_second(1),
        Limit::per_second(1).refill(1, SECOND),
        Limit::fixed_window(1, SECOND),
        Limit::fixed_window(1, SECOND).from_first(),
        Limit::sliding_log(1, SECOND),
    ]
}

fn patient(limit: Limit, name: &str, patience: Duration) -> Charge {
    Charge::of(limit, key(name), 1).patient(patience)
}

/// First come, first served.
pub fn patience_books_ahead_in_order_of_arrival(subject: &Subject<impl Store>) {
    for limit in one_a_second().into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = patient(limit, "alice", SECOND * 3);
        for seconds in 0..=3 {
            let decision = subject.take(&charge);
            assert!(decision.is_admitted(), "{limit}");
            assert_eq!(decision.wait(), SECOND * seconds, "{limit}");
        }
        // A later request does not get in between, patient or not.
        subject.pass(SECOND * 2);
        assert!(!subject.admits(limit, "alice"), "{limit}");
        assert_eq!(subject.take(&charge).wait(), SECOND * 2, "{limit}");
    }
}

/// No request waits in vain, and a refusal books nothing.
pub fn a_request_that_would_wait_too_long_is_refused_at_once(subject: &Subject<impl Store>) {
    for limit in one_a_second().into_iter().filter(|limit| subject.keeps(*limit)) {
        subject.spend(limit, "alice", 1);
        for _ in 0..3 {
            let refused = subject.take(&patient(limit, "alice", SECOND - TICK));
            assert!(!refused.is_admitted(), "{limit}");
            assert_eq!(refused.retry_after(), Some(SECOND), "{limit}");
        }
        assert_eq!(subject.take(&patient(limit, "alice", SECOND)).wait(), SECOND, "{limit}");
    }
}

/// Its client has gone, so the next request takes the place.
pub fn a_booked_place_can_be_given_back(subject: &Subject<impl Store>) {
    for limit in one_a_second().into_iter().filter(|limit| subject.keeps(*limit)) {
        let charge = patient(limit, "alice", SECOND * 9);
        subject.take(&charge);
        subject.take(&charge);
        let last = subject.take(&charge);
        assert_eq!(last.wait(), SECOND * 2, "{limit}");
        subject.settle(&charge, &last, |_| 0);
        assert_eq!(subject.take(&charge).wait(), SECOND * 2, "{limit}");
        assert_eq!(subject.take(&charge).wait(), SECOND * 3, "{limit}");
    }
}

/// The queue has a length, and needs no patience.
pub fn a_leaky_bucket_spreads_its_queue(subject: &Subject<impl Store>) {
    let limit = Limit::leaky_bucket(10, SECOND).queue(3);
    if !subject.keeps(limit) {
        return;
    }
    for hundreds in 0..=3 {
        let decision = subject.spend(limit, "alice", 1);
        assert!(decision.is_admitted());
        assert_eq!(decision.wait(), Duration::from_millis(100) * hundreds);
    }
    assert!(!subject.take(&patient(limit, "alice", MINUTE)).is_admitted());
    subject.pass(Duration::from_millis(100));
    assert_eq!(subject.spend(limit, "alice", 1).wait(), Duration::from_millis(300));
}

/// It is unknown when that will be.
pub fn no_request_waits_for_a_held_place(subject: &Subject<impl Store>) {
    let limit = Limit::concurrent(1);
    if !subject.keeps(limit) {
        return;
    }
    assert!(subject.admits(limit, "alice"));
    assert!(!subject.take(&patient(limit, "alice", MINUTE)).is_admitted());
}
