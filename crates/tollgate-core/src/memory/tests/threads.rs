//! Many threads over few buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

/// Every charge locks many of the few buckets, in an order of its own if it were let.
#[test]
fn charges_over_the_same_few_buckets_do_not_wait_for_each_other_for_ever() {
    let (store, clock) = memory(4);
    let limits: Vec<_> = (1..=4)
        .flat_map(|i| [Limit::per_second(50 + i), Limit::sliding_log(50 + i, SECOND)])
        .collect();
    let (decided, full) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..8 {
            let (store, clock, mut limits) = (&store, &clock, limits.clone());
            let (decided, full) = (&decided, &full);
            limits.rotate_left(thread);
            scope.spawn(move || {
                for round in 0..500 {
                    let mut charge = Charge::new();
                    for (limit, i) in limits.iter().zip(0..) {
                        let number = (round * i + i) % 7;
                        charge.owe(*limit, key(number), 1).expect("limits of different names");
                    }
                    let which = if store.take(&charge).now().is_ok() { decided } else { full };
                    which.fetch_add(1, Ordering::Relaxed);
                    clock.advance(Duration::from_millis(7));
                }
            });
        }
    });
    assert_eq!(decided.load(Ordering::Relaxed) + full.load(Ordering::Relaxed), 4_000);
    assert!(decided.into_inner() > 0);
}

/// Rows are moved out of newcomers' way while they are being charged.
#[test]
fn nothing_is_lost_while_threads_fill_the_table() {
    let (store, _clock) = memory(4_000);
    let limit = Limit::per_hour(16);
    thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..4_000 {
                    // Each thread meets the keys in another order.
                    let number = (number * 1_009 + thread * 500) % 4_000;
                    // Where all who might make way are locked by others, it is turned away for now.
                    while take(store, limit, number).is_err() {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(store.len(), 4_000);
    assert!((0..4_000).all(|number| remaining(&store, limit, number) == 8));
}
