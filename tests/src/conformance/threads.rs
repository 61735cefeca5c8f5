//! Many requests at once, while the clock stands still.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;

use super::{MINUTE, shapes};
use crate::{Subject, key};

const THREADS: usize = 8;
const EACH: usize = 30;

/// Runs `run` with the number of the thread on eight threads that begin together.
fn together(run: impl Fn(usize) + Sync) {
    let barrier = Barrier::new(THREADS);
    let (run, barrier) = (&run, &barrier);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                barrier.wait();
                run(thread);
            });
        }
    });
}

/// A check that is separate from the charge would admit more.
pub fn threads_on_one_key_get_exactly_the_limit(subject: &Subject<impl Store + Sync>) {
    for limit in shapes(100).filter(|limit| subject.keeps(*limit)) {
        let admitted = AtomicU64::new(0);
        together(|_| {
            for _ in 0..EACH {
                let one = u64::from(subject.admits(limit, "alice"));
                admitted.fetch_add(one, Ordering::Relaxed);
            }
        });
        assert_eq!(admitted.into_inner(), 100, "{limit}");
    }
}

/// Every limit has been charged exactly what was admitted.
pub fn threads_on_several_limits_are_charged_all_or_none(subject: &Subject<impl Store + Sync>) {
    let all = Limit::per_hour(150).named("all");
    let group = Limit::fixed_window(60, MINUTE).named("group");
    let own = Limit::sliding_log(25, MINUTE).named("own");
    if ![all, group, own].iter().all(|limit| subject.keeps(*limit)) {
        return;
    }
    let admitted = [const { AtomicU64::new(0) }; THREADS];
    together(|thread| {
        let names = ["all".to_owned(), format!("group {}", thread / 2), format!("own {thread}")];
        let mut debit = [all, group, own].into_iter().zip(names).collect::<Vec<_>>();
        // Locks taken in the order of the charge would deadlock.
        debit.rotate_left(thread % 3);
        let mut charge = Charge::new();
        for (limit, name) in debit {
            charge.add(limit, key(&name), 1).expect("limits of different names");
        }
        for _ in 0..EACH {
            let one = u64::from(subject.take(&charge).is_admitted());
            admitted[thread].fetch_add(one, Ordering::Relaxed);
        }
    });
    let admitted = admitted.map(AtomicU64::into_inner);
    assert_eq!(admitted.iter().sum::<u64>(), 150);
    assert_eq!(subject.remaining(all, "all"), 0);
    for (thread, own_admitted) in admitted.iter().enumerate() {
        let left = subject.remaining(own, &format!("own {thread}"));
        assert_eq!(left, 25 - own_admitted);
    }
    for (pair, both) in admitted.chunks(2).enumerate() {
        let left = subject.remaining(group, &format!("group {pair}"));
        assert_eq!(left, 60 - both.iter().sum::<u64>());
    }
}

/// Never more held at a time than the limit, and none in the end.
pub fn threads_that_give_back_leave_nothing_behind(subject: &Subject<impl Store + Sync>) {
    let limit = Limit::concurrent(3);
    if !subject.keeps(limit) {
        return;
    }
    let (running, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let charge = Charge::of(limit, key("alice"), 1);
    together(|_| {
        for _ in 0..EACH {
            let decision = subject.take(&charge);
            if decision.is_admitted() {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                subject.settle(&charge, &decision, |_| 0);
            }
        }
    });
    assert!((1..=3).contains(&most.into_inner()));
    assert_eq!(subject.remaining(limit, "alice"), 3);
}
