//! Charges that lock many buckets.

use super::*;

/// Every charge locks many of the few buckets, each in an order of its own if the store did not sort them.
#[test]
fn charges_over_the_same_few_buckets_do_not_wait_for_each_other_for_ever() {
    const LIMITS: u64 = if cfg!(miri) { 1 } else { 4 };
    let (store, clock) = memory(4);
    let limits: Vec<_> = (1..=LIMITS)
        .flat_map(|i| [Limit::per_second(50 + i), Limit::sliding_log(50 + i, SECOND)])
        .collect();
    let (decided, full) = (AtomicU64::new(0), AtomicU64::new(0));
    together(|thread| {
        let mut limits = limits.clone();
        let by = thread as usize % limits.len();
        limits.rotate_left(by);
        for round in 0..ROUNDS * 5 {
            let mut charge = Charge::new();
            for (limit, i) in limits.iter().zip(0..) {
                let number = (round * i + i) % 7;
                charge.add(*limit, key(number), 1).expect("limits of different names");
            }
            let counter = if store.take(&charge).now().is_ok() { &decided } else { &full };
            one(true, counter);
            clock.advance(Duration::from_millis(7));
        }
    });
    assert_eq!(decided.load(Ordering::Relaxed) + full.into_inner(), THREADS * ROUNDS * 5);
    assert!(decided.into_inner() > 0);
}

/// Half of the threads charge both limits, half only the first.
#[test]
fn several_limits_are_charged_all_or_none_beside_one() {
    let count = THREADS * ROUNDS / 2;
    let (first, second) = (Limit::per_hour(count), Limit::sliding_log(count / 4, MINUTE));
    let (store, _clock) = memory(4);
    let (alone, both) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut charge = Charge::of(first, key(0), 1);
    charge.add(second, key(1), 1).expect("two limits");
    together(|thread| {
        for round in 0..ROUNDS {
            if thread % 2 == 0 {
                let outcome = store.take(&charge).now().expect("room");
                one(outcome.is_admitted(), &both);
            } else {
                one(spend(&store, first, 0, round).expect("room"), &alone);
            }
        }
    });
    let (alone, both) = (alone.into_inner(), both.into_inner());
    assert_eq!(remaining(&store, first, 0), count - alone - both);
    assert_eq!(remaining(&store, second, 1), count / 4 - both);
    assert_eq!(alone + both, count, "as many came alone as there is");
}
