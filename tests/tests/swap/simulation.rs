//! Several processes over one engine that lies: never more than the limit is admitted, and no charge is lost or kept in
//! vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::Swap;
use sluicegate_tests::{answer, key};

use crate::engine::{Lies, MadeUp};
use crate::store::{by_hand, left, open, runtime, settled};

const DAY: Duration = Duration::from_secs(86_400);
const PROCESSES: usize = 5;
const TAKES: u64 = 120;

fn store(engine: &MadeUp) -> Swap<MadeUp> {
    let millis = Duration::from_millis;
    let clock = engine.clock().clone();
    open(by_hand(engine.clone(), &clock).breaker(0, millis(1), millis(3)))
}

async fn take(store: &Swap<MadeUp>, charge: &Charge) -> Option<Outcome> {
    match store.take(charge) {
        Answer::Now(outcome) => outcome.ok(),
        Answer::Later(future) => future.await.ok(),
    }
}

/// What the callers of all processes were admitted in total, and what is left of each limit.
fn simulate(lies: Lies, seed: u64, rows_at_once: usize) {
    let engine = MadeUp::new(&ManualClock::new()).rows_at_once(rows_at_once).lies(lies, seed);
    let each = Limit::fixed_window(150, DAY);
    let all = Limit::fixed_window(400, DAY).named("all");
    let stores: Vec<_> = (0..PROCESSES).map(|_| store(&engine)).collect();
    let admitted = runtime().block_on(async {
        let tasks: Vec<_> = stores
            .iter()
            .flat_map(|store| (0..TAKES).map(move |number| (store.clone(), number)))
            .map(|(store, number)| {
                tokio::spawn(async move {
                    for _ in 0..number * 5 {
                        tokio::task::yield_now().await;
                    }
                    let name = ["alice", "bob", "carol"][(number % 3) as usize];
                    let mut charge = Charge::of(each, key(name), 1);
                    charge.add(all, key("all"), 1).expect("two limits");
                    if number % 11 == 0 {
                        // It leaves before the answer, or just when it comes.
                        let future = async { take(&store, &charge).await };
                        let leave = async {
                            for _ in 0..number % 7 {
                                tokio::task::yield_now().await;
                            }
                        };
                        tokio::select! {
                            biased;
                            () = leave => return None,
                            outcome = future => return outcome.filter(Outcome::is_admitted).map(|_| name),
                        }
                    }
                    let outcome = take(&store, &charge).await?;
                    if outcome.is_admitted() && number % 5 == 0 {
                        for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
                            store.settle(debit, &receipt, 0);
                        }
                        return None;
                    }
                    outcome.is_admitted().then_some(name)
                })
            })
            .collect();
        let mut admitted = Vec::new();
        for task in tasks {
            admitted.extend(task.await.expect("no panic"));
        }
        admitted
    });
    stores.iter().for_each(settled);
    let honest = store(&engine.honest());
    let counts: Vec<_> = stores.iter().map(Swap::counts).collect();
    assert!(counts.iter().all(|counts| counts.unanswered == 0 && counts.settlements_dropped == 0));
    for name in ["alice", "bob", "carol"] {
        let of_name = admitted.iter().filter(|admitted| **admitted == name).count() as u64;
        assert!(of_name <= 150, "{of_name} of {name}");
        assert_eq!(left(&honest, each, name), 150 - of_name, "{name}, {lies:?}, seed {seed}");
    }
    let total = admitted.len() as u64;
    assert_eq!(left(&honest, all, "all"), 400 - total, "{lies:?}, seed {seed}");
    assert!(total > 50, "{total} were admitted, {lies:?}");
}

fn each_seed(lies: Lies) {
    for seed in 0..4 {
        simulate(lies, seed, 64);
        simulate(lies, 100 + seed, 1);
    }
}

#[test]
fn an_honest_engine_loses_and_keeps_nothing() {
    each_seed(Lies::default());
}

#[test]
fn a_swap_whose_answer_is_lost_is_given_back() {
    each_seed(Lies { failed: 100, ..Lies::default() });
}

#[test]
fn a_swap_that_happens_after_its_failure_is_given_back_or_prevented() {
    each_seed(Lies { late: 100, ..Lies::default() });
}

#[test]
fn a_swap_that_was_sent_twice_counts_once() {
    each_seed(Lies { twice: 200, ..Lies::default() });
}

#[test]
fn a_stale_read_costs_another_try() {
    each_seed(Lies { stale: 200, ..Lies::default() });
}

#[test]
fn an_engine_that_does_all_of_this_and_goes_away_loses_nothing() {
    each_seed(Lies { failed: 60, away: 60, late: 60, twice: 60, stale: 0 });
}

/// Versions are counted from one for each row, and begin again when the row was forgotten.
#[test]
fn a_version_that_comes_again_is_not_taken_for_the_one_that_was_seen() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let limit = Limit::fixed_window(3, DAY);
    let (one, other) = (store(&engine), store(&engine));
    let admits = |store: &Swap<MadeUp>| {
        answer(store.take(&Charge::of(limit, key("alice"), 1))).expect("an answer").is_admitted()
    };
    assert!(admits(&one));
    clock.advance(3 * DAY);
    assert!(admits(&other));
    // The row has the version that this store remembers, and another content.
    assert!(admits(&one) && admits(&one) && !admits(&one));
    assert_eq!(left(&other, limit, "alice"), 0);
}

#[test]
fn a_damaged_row_is_an_error_for_its_key_alone() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let limit = Limit::per_minute(3);
    let charge = |name| Charge::of(limit, key(name), 1);
    assert!(answer(store(&engine).take(&charge("alice"))).expect("an answer").is_admitted());
    engine.damage();
    let store = store(&engine);
    for _ in 0..20 {
        let error = answer(store.take(&charge("alice"))).expect_err("a damaged row");
        let source = std::error::Error::source(&error).expect("a reason").to_string();
        assert_eq!(source, "the row is damaged, or something else wrote it");
    }
    assert!(answer(store.take(&charge("bob"))).expect("an answer").is_admitted());
}

#[test]
fn nothing_interferes_and_each_decision_is_one_call() {
    let clock = ManualClock::new();
    let store = store(&MadeUp::new(&clock));
    let charge = Charge::of(Limit::per_minute(100), key("alice"), 1);
    for _ in 0..50 {
        assert!(answer(store.take(&charge)).expect("an answer").is_admitted());
    }
    let counts = store.counts();
    assert_eq!((counts.loads, counts.swaps, counts.conflicts), (1, 50, 0));
}

/// As the limits of policy files are.
#[test]
fn a_refusal_by_a_carried_limit_writes_nothing() {
    let clock = ManualClock::new();
    let second = Duration::from_secs(1);
    let each = [
        Limit::per_minute(3),
        Limit::fixed_window(3, DAY),
        Limit::sliding_window(3, DAY),
        Limit::sliding_log(3, DAY),
    ];
    for limit in each {
        let engine = MadeUp::new(&clock);
        let store = store(&engine);
        let charge = Charge::of(limit.named("plan").carried(), key("alice"), 3);
        let admits = || answer(store.take(&charge)).expect("an answer").is_admitted();
        assert!(admits());
        let before = engine.versions();
        for _ in 0..3 {
            clock.advance(second);
            assert!(!admits());
        }
        assert_eq!(engine.versions(), before, "{limit}");
    }
}

#[test]
fn requests_for_one_key_are_decided_together() {
    let clock = ManualClock::new();
    let store = store(&MadeUp::new(&clock));
    let charge = Charge::of(Limit::per_minute(100), key("alice"), 1);
    let admitted = runtime().block_on(async {
        let tasks: Vec<_> = (0..1_000)
            .map(|_| {
                let (store, charge) = (store.clone(), charge.clone());
                tokio::spawn(async move { take(&store, &charge).await.expect("an answer") })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += u64::from(task.await.expect("no panic").is_admitted());
        }
        admitted
    });
    let counts = store.counts();
    assert_eq!(admitted, 100);
    assert!(counts.swaps + counts.loads < 300, "{counts:?}");
}

#[test]
fn a_remembered_refusal_needs_no_call() {
    let clock = ManualClock::new();
    let second = Duration::from_secs(1);
    let store = open(by_hand(MadeUp::new(&clock), &clock).remember_refusals(second));
    let charge = Charge::of(Limit::per_minute(1), key("alice"), 1);
    let admits = || answer(store.take(&charge)).expect("an answer").is_admitted();
    assert!(admits());
    let before = store.counts();
    assert!((0..100).all(|_| !admits()));
    let after = store.counts();
    assert_eq!((before.loads, before.swaps), (after.loads, after.swaps));
    assert_eq!(after.refused_locally, 100);
    clock.advance(60 * second);
    assert!(admits());
}

/// What each process may hold is what its requests hold, whatever the engine does with its swaps: never less, and in the
/// end no more.
#[test]
fn random_processes_hold_what_their_requests_hold() {
    let lies = Lies { failed: 60, away: 60, late: 60, twice: 60, stale: 0 };
    for seed in 0..4 {
        let engine = MadeUp::new(&ManualClock::new()).lies(lies, seed);
        let limit = Limit::concurrent(20);
        let stores: Vec<_> = (0..PROCESSES).map(|_| store(&engine)).collect();
        let held = Arc::new(AtomicU64::new(0));
        runtime().block_on(async {
            let tasks = (0..400).map(|number: u64| {
                let (store, held) = (stores[number as usize % PROCESSES].clone(), held.clone());
                tokio::spawn(async move {
                    for _ in 0..number * 5 {
                        tokio::task::yield_now().await;
                    }
                    let charge = Charge::of(limit, key("alice"), number % 3 + 1);
                    let cost = number % 3 + 1;
                    let Some(outcome) = take(&store, &charge).await else { return };
                    if outcome.is_admitted() {
                        assert!(held.fetch_add(cost, Ordering::SeqCst) + cost <= 20);
                        for _ in 0..number % 40 {
                            tokio::task::yield_now().await;
                        }
                        held.fetch_sub(cost, Ordering::SeqCst);
                        let (debit, receipt) = (charge.debits().next(), outcome.receipts().next());
                        store.settle(debit.expect("one"), &receipt.expect("one"), 0);
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.expect("no panic");
            }
        });
        stores.iter().for_each(settled);
        assert_eq!(left(&store(&engine.honest()), limit, "alice"), 20, "seed {seed}");
    }
}
