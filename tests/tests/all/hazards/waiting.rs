//! Waiting.

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_tests::key;

use super::*;

/// A request sleeps as long as it may, and is then refused.
#[test]
fn a_hopeless_waiter_sleeps_anyway() {
    let subject = memory();
    let limit = Limit::per_minute(1);
    assert!(subject.admits(limit, "alice"));
    let hopeless = Charge::of(limit, key("alice"), 1).patient(SECOND * 59);
    let decision = subject.take(&hopeless);
    assert!(!decision.is_admitted());
    assert!(decision.wait().is_zero());
    let never = Charge::of(limit, key("alice"), 2).patient(MINUTE * 60);
    assert_eq!(subject.take(&never).retry_after(), None);
    // Neither of them has taken the place of one that can be served.
    assert_eq!(subject.take(&hopeless.patient(MINUTE)).wait(), MINUTE);
}

/// A client that asks at the right moment overtakes those that wait.
#[test]
fn unfair_waiting() {
    let subject = memory();
    let limit = Limit::per_second(1);
    let charge = Charge::of(limit, key("alice"), 1).patient(MINUTE);
    let start = subject.clock.now();
    let mut leaves = Vec::new();
    for step in 0..30 {
        let wait = subject.take(&charge).wait().as_micros() as u64;
        leaves.push(subject.clock.now() - start + wait);
        assert!(!subject.admits(limit, "alice"), "overtook at step {step}");
        subject.pass(Duration::from_millis(333));
    }
    assert!(leaves.windows(2).all(|pair| pair[0] + 1_000_000 == pair[1]), "{leaves:?}");
}

/// The waiting request is served, and no later request was served before it.
#[test]
fn a_queue_behind_several_limits_keeps_its_order() {
    let subject = memory();
    let mut charge = Charge::of(Limit::per_second(2).burst(1), key("alice"), 1);
    charge.add(Limit::sliding_log(5, SECOND * 10), key("alice"), 1).expect("two limits");
    let charge = charge.patient(MINUTE);
    let waits: Vec<_> = (0..12).map(|_| subject.take(&charge).wait()).collect();
    assert!(waits.is_sorted());
    for (i, wait) in waits.iter().enumerate() {
        let within = waits[..i].iter().filter(|before| **before + SECOND * 10 > *wait).count();
        assert!(within < 5, "{waits:?}");
    }
}
