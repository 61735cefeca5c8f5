//! The bounded store: like `Memory` in every answer, on the limits that governor can keep.

use std::time::Duration;

use proptest::prelude::*;
use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::key::Part;
use sluicegate_core::limit::{LimitStatus, Verdict};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Decision, Limit, ManualClock, Memory};
use sluicegate_governor::Governor;

use super::key;

fn take(store: &Governor, limit: Limit, name: impl Part) -> Result<Decision, StoreError> {
    let charge = Charge::of(limit, key(name), 1);
    store.take(&charge).now().map(|outcome| outcome.decision(&charge))
}

#[test]
fn an_impossible_request_is_refused_for_good() {
    let store = Governor::with_clock(10, ManualClock::new());
    let limit = Limit::per_hour(1).burst(100);
    // With this cost governor's own product wraps to something small.
    for cost in [101, 5_124_097, u64::from(u32::MAX) + 1, u64::MAX] {
        let refused = store.take(&Charge::of(limit, key("alice"), cost)).now().unwrap();
        assert!(!refused.is_admitted());
        assert_eq!(refused.retry_after(), None);
    }
    let hundred = Charge::of(limit, key("alice"), 100);
    let outcome = store.take(&hundred).now().unwrap();
    assert_eq!(outcome.decision(&hundred).remaining(), Some(0));
}

#[test]
fn a_limit_that_governor_cannot_keep_is_refused_when_charged_too() {
    let store = Governor::with_clock(10, ManualClock::new());
    for limit in [Limit::per_second(3), Limit::concurrent(3)] {
        assert!(store.check(&limit).is_err());
        assert!(take(&store, limit, "alice").unwrap_err().is_unsupported());
    }
}

#[test]
fn a_flood_of_keys_stays_within_the_bound_and_frees_none_that_is_limited() {
    let clock = ManualClock::new();
    let store = Governor::with_clock(2_000, &clock);
    let limit = Limit::per_hour(1);
    assert!(take(&store, limit, "victim").unwrap().is_admitted());
    let full = (0..20_000_u64).filter(|name| take(&store, limit, *name).is_err()).count();
    assert!(full > 10_000);
    assert!(store.len() <= 2_000, "{}", store.len());
    assert!(!take(&store, limit, "victim").unwrap().is_admitted());

    // Once they have recovered, their room is reused without a clean-up.
    clock.advance(Duration::from_secs(3_600));
    for name in 100_000..101_000_u64 {
        assert!(take(&store, limit, name).unwrap().is_admitted());
    }
}

#[test]
fn as_many_keys_as_asked_for_fit() {
    for capacity in [1_u64, 10, 1_000, 10_000] {
        let store = Governor::with_clock(capacity as usize, ManualClock::new());
        for name in 0..capacity {
            assert!(take(&store, Limit::per_hour(1), name).is_ok(), "{name} of {capacity}");
        }
    }
}

#[test]
fn one_who_waits_for_a_limit_of_its_own_does_not_shut_a_shared_bucket() {
    let clock = ManualClock::new();
    let (governor, memory) =
        (Governor::with_clock(100, &clock), Memory::builder().clock(&clock).build());
    let own = Limit::per(1, Duration::from_secs(8)).named("own");
    let shared = Limit::per_second(10).named("shared");
    let charge = |name: &str| {
        let mut charge = Charge::new();
        charge.add(own, key(name), 1).unwrap();
        charge.add(shared, key("all"), 1).unwrap();
        charge.patient(Duration::from_secs(10))
    };
    let take = |name: &str| {
        let charge = charge(name);
        let ours = governor.take(&charge).now().unwrap().decision(&charge);
        let theirs = memory.take(&charge).now().unwrap().decision(&charge);
        assert_eq!(bare(&ours), bare(&theirs), "{name}");
        ours
    };
    assert!(take("alice").is_admitted());
    let refused = take("alice");
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(8)));
    let refusing: Vec<_> = refused.statuses().map(|status| status.refused).collect();
    assert_eq!(refusing, [true, false]);
    for name in ["b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        assert_eq!(take(name).verdict(), Verdict::Admit { wait: Duration::ZERO });
    }
    // Within half of the bucket, a place is still booked.
    clock.advance(Duration::from_millis(7_600));
    assert_eq!(take("alice").wait(), Duration::from_millis(400));
}

#[test]
fn one_who_waits_for_a_shared_bucket_alone_is_held_back_by_no_other() {
    // The wait is given in whole microseconds, and is longer than the bucket itself requires.
    let store = Governor::with_clock(10, ManualClock::new());
    let shared = Limit::per_second(1_000_000_000).burst(1);
    let mut charge = Charge::new();
    charge.add(shared, key("all"), 1).unwrap();
    charge.add(Limit::per_second(10), key("alice"), 1).unwrap();
    let charge = charge.patient(Duration::from_secs(1));
    assert!(store.take(&charge).now().unwrap().is_admitted());
    assert_eq!(store.take(&charge).now().unwrap().wait(), Duration::from_micros(1));
}

/// Rates whose interval is a whole number of microseconds, so that both stores count in the same ticks.
fn limits() -> impl Strategy<Value = Limit> {
    let interval = prop_oneof![Just(1_u64), 2..1_000_u64, Just(20_000), Just(1_000_000)];
    (interval, 1..20_u64, any::<bool>()).prop_map(|(interval, burst, soft)| {
        let limit = Limit::per(1, Duration::from_micros(interval)).burst(burst);
        if soft { limit.soft(burst - 1) } else { limit }
    })
}

#[derive(Debug, Clone)]
enum Operation {
    Take { cost: u64, patience: u64 },
    Peek(u64),
    Settle { earlier: usize, spent: u64 },
    Reset,
    Pass(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let patience = prop_oneof![3 => Just(0), 1 => 0..10_000_u64];
    let operation = prop_oneof![
        6 => (0..22_u64, patience).prop_map(|(cost, patience)| Operation::Take { cost, patience }),
        1 => (0..22_u64).prop_map(Operation::Peek),
        2 => (0..9_usize, 0..30_u64).prop_map(|(earlier, spent)| Operation::Settle { earlier, spent }),
        1 => Just(Operation::Reset),
        4 => (0..5_000_u64).prop_map(Operation::Pass),
    ];
    prop::collection::vec(operation, 1..60)
}

proptest! {
    /// As long as the clock does not step back. Each store handles that in its own way, which other tests cover.
    #[test]
    fn every_answer_is_that_of_memory(limits in prop::collection::vec(limits(), 1..4), shared in any::<bool>(), operations in operations()) {
        let clock = ManualClock::new();
        let governor = Governor::with_clock(100, &clock);
        let memory = Memory::builder().capacity(100).clock(&clock).build();
        let charge = |cost: u64| {
            let mut charge = Charge::new();
            for (i, limit) in limits.iter().enumerate() {
                let key = key(if shared && i == 0 { "all" } else { "alice" });
                charge.add(limit.named(["a", "b", "c", "d"][i]), key, cost).unwrap();
            }
            charge
        };
        let mut admitted = Vec::new();
        for operation in operations {
            match operation {
                Operation::Take { cost, patience } => {
                    let charge = charge(cost).patient(Duration::from_micros(patience));
                    let (ours, theirs) = (governor.take(&charge), memory.take(&charge));
                    let (ours, theirs) = (ours.now().unwrap(), theirs.now().unwrap());
                    prop_assert_eq!(told(&ours, &charge), told(&theirs, &charge));
                    if ours.is_admitted() {
                        admitted.push((charge, ours, theirs));
                    }
                }
                Operation::Peek(cost) => {
                    let charge = charge(cost);
                    let (ours, theirs) = (governor.peek(&charge), memory.peek(&charge));
                    let (ours, theirs) = (ours.now().unwrap(), theirs.now().unwrap());
                    prop_assert_eq!(told(&ours, &charge), told(&theirs, &charge));
                }
                Operation::Settle { earlier, spent } => {
                    let Some((charge, ours, theirs)) = admitted.iter().rev().nth(earlier) else {
                        continue;
                    };
                    for (debit, receipt) in charge.debits().zip(ours.receipts()) {
                        governor.settle(debit, &receipt, spent);
                    }
                    for (debit, receipt) in charge.debits().zip(theirs.receipts()) {
                        memory.settle(debit, &receipt, spent);
                    }
                }
                Operation::Reset => {
                    let charge = charge(1);
                    let (ours, theirs) = (governor.reset(&charge), memory.reset(&charge));
                    let (ours, theirs) = (ours.now().unwrap(), theirs.now().unwrap());
                    prop_assert_eq!(told(&ours, &charge), told(&theirs, &charge));
                }
                Operation::Pass(micros) => clock.advance(Duration::from_micros(micros)),
            }
        }
    }
}

fn told(outcome: &Outcome, charge: &Charge) -> (Verdict, Vec<LimitStatus>) {
    bare(&outcome.decision(charge))
}

/// A decision without its receipts, which each store makes in its own way.
fn bare(decision: &Decision) -> (Verdict, Vec<LimitStatus>) {
    let statuses = decision.statuses().cloned().map(|mut status| {
        status.receipt = Default::default();
        status
    });
    (decision.verdict(), statuses.collect())
}
