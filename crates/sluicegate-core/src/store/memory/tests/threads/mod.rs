//! Many threads over few buckets, while the clock stands still. Every count is exact.

mod locks;
mod mixed;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

/// Under Miri this takes a thousand times as long.
const THREADS: u64 = if cfg!(miri) { 4 } else { 8 };

/// How often each thread repeats its work.
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 100 };

/// Runs `run` on threads that begin together, with the number of the thread.
fn together(run: impl Fn(u64) + Sync) {
    let (run, barrier) = (&run, &Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                barrier.wait();
                run(thread);
            });
        }
    });
}

/// Spends by one of two ways.
fn spend(store: &Memory, limit: Limit, number: u64, turn: u64) -> Result<bool, StoreError> {
    if turn % 2 == 0 {
        return store.spend(&limit, &key(number), 1).map(|outcome| outcome.is_admitted());
    }
    store.take(&Charge::of(limit, key(number), 1)).now().map(|outcome| outcome.is_admitted())
}

fn one(admitted: bool, counter: &AtomicU64) {
    counter.fetch_add(u64::from(admitted), Ordering::Relaxed);
}

/// All limits but concurrency, which no thread gives back here.
fn limits(count: u64) -> [Limit; 6] {
    [
        Limit::per_hour(count),
        Limit::per_hour(count).refill(1, MINUTE * 60),
        Limit::fixed_window(count, MINUTE),
        Limit::sliding_window(count, MINUTE),
        Limit::sliding_log(count, MINUTE),
        Limit::per_hour(count).ban(MINUTE),
    ]
}

#[test]
fn one_key_gets_exactly_its_limit() {
    for limit in limits(THREADS * ROUNDS / 2) {
        let (store, _clock) = memory(1);
        let admitted = AtomicU64::new(0);
        together(|thread| {
            for round in 0..ROUNDS {
                one(spend(&store, limit, 0, thread + round).expect("room"), &admitted);
            }
        });
        assert_eq!(admitted.into_inner(), THREADS * ROUNDS / 2, "{limit}");
        assert_eq!(remaining(&store, limit, 0), 0, "{limit}");
    }
}

/// Their rows are in the same buckets, and some are displaced.
#[test]
fn each_of_many_keys_gets_exactly_its_limit() {
    const KEYS: u64 = if cfg!(miri) { 3 } else { 60 };
    for limit in limits(THREADS * 3) {
        let (store, _clock) = memory(KEYS as usize);
        let admitted: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        // A new key finds no room for now if other threads use all rows that might make way for it.
        (0..KEYS).for_each(|number| one(admits(&store, limit, number), &admitted[number as usize]));
        together(|thread| {
            for turn in 0..5 * KEYS {
                let number = (turn * 7 + thread * 11) % KEYS;
                let counter = &admitted[number as usize];
                one(spend(&store, limit, number, turn).expect("its row is there"), counter);
            }
        });
        for (number, admitted) in (0..).zip(admitted) {
            assert_eq!(admitted.into_inner(), THREADS * 3, "key {number} of {limit}");
            assert_eq!(remaining(&store, limit, number), 0, "key {number} of {limit}");
        }
    }
}

/// By the machine's clock. Threads do not read it in the order in which they write.
#[test]
fn one_key_gets_exactly_its_limit_by_the_machine_clock() {
    let count = THREADS * ROUNDS / 2;
    // A token takes months.
    let limit = Limit::per(count, MINUTE * 60 * 24 * 36_500);
    let store = Memory::with_capacity(1);
    let admitted = AtomicU64::new(0);
    together(|thread| {
        for round in 0..ROUNDS {
            one(spend(&store, limit, 0, thread + round).expect("room"), &admitted);
        }
    });
    assert_eq!(admitted.into_inner(), count);
}

/// Rows are moved to make way for new keys while they are being charged.
#[test]
fn nothing_is_lost_while_threads_fill_the_table() {
    const KEYS: u64 = if cfg!(miri) { 10 } else { 4_000 };
    let (store, _clock) = memory(KEYS as usize);
    let limit = Limit::per_hour(2 * THREADS).when_full(WhenFull::Admit);
    together(|thread| {
        for number in 0..KEYS {
            // Each thread uses the keys in another order.
            let number = (number * 1_009 + thread * 500) % KEYS;
            // If other threads lock all rows that might make way, the key finds no room for now.
            while spend(&store, limit, number, thread).is_err() {
                thread::yield_now();
            }
        }
    });
    assert_eq!(store.len(), KEYS as usize);
    assert!((0..KEYS).all(|number| remaining(&store, limit, number) == THREADS));
}

/// Keys with a row are neither freed nor refused by a flood that moves their rows.
#[test]
fn residents_get_exactly_their_limit_in_a_flood() {
    const RESIDENTS: u64 = if cfg!(miri) { 4 } else { 200 };
    let (store, _clock) = memory(RESIDENTS as usize * 2);
    let limit = Limit::per_hour(THREADS).when_full(WhenFull::Admit);
    let admitted: Vec<_> = (0..RESIDENTS).map(|_| AtomicU64::new(1)).collect();
    assert!((0..RESIDENTS).all(|number| admits(&store, limit, number)));
    let turned_away = AtomicU64::new(0);
    together(|thread| {
        for turn in 0..RESIDENTS * 4 {
            let number = (turn * 7 + thread * 11) % RESIDENTS;
            let counter = &admitted[number as usize];
            one(spend(&store, limit, number, turn).expect("its row is there"), counter);
            let newcomer = 1_000_000 * (thread + 1) + turn;
            match spend(&store, limit, newcomer, turn / 2) {
                Ok(admitted) => assert!(admitted, "nobody has met it before"),
                Err(error) => one(error.is_full(), &turned_away),
            }
        }
    });
    for (number, admitted) in (0..).zip(admitted) {
        assert_eq!(admitted.into_inner(), THREADS, "key {number}");
        assert_eq!(remaining(&store, limit, number), 0, "key {number}");
    }
    let turned_away = turned_away.into_inner();
    assert_eq!(store.turned_away(), turned_away);
    let met = RESIDENTS * 4 * THREADS - turned_away;
    assert_eq!(store.len() as u64, RESIDENTS + met);
}
