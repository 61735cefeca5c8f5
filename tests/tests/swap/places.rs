//! Places of concurrency limits, and the processes that hold them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::{Engine, EngineError, Loaded, Swap, Swapped, Write};
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::engine::MadeUp;
use crate::store::{by_hand, left, open, settled};

const EIGHT: Limit = Limit::concurrent(8);
const LEASE: Duration = Duration::from_secs(10);
/// A lease that does not end while a test turns the clock in small steps.
const LONG: Duration = Duration::from_secs(10_000);
/// The time between two renewals.
const PAUSE: Duration = Duration::from_millis(2_500);

fn take<E: Engine>(store: &Swap<E>, cost: u64) -> Outcome {
    answer(store.take(&charge(cost))).expect("the store answers")
}

fn charge(cost: u64) -> Charge {
    Charge::of(EIGHT, key("alice"), cost)
}

fn give_back(store: &Swap<MadeUp>, cost: u64, outcome: &Outcome) {
    send_back(store, cost, outcome);
    settled(store);
}

/// Answers, keeps its callers waiting, is away, or loses an answer.
#[derive(Clone)]
struct Moody(MadeUp, Arc<AtomicU8>);

const WELL: u8 = 0;
const WAITS: u8 = 1;
const AWAY: u8 = 2;
/// Swaps, loses the answer, and is away from then on.
const LEAVES: u8 = 3;
/// Loads, as a replica does, and cannot write.
const READS: u8 = 4;

impl Moody {
    fn new(engine: &MadeUp) -> Self {
        Self(engine.clone(), Arc::default())
    }

    fn becomes(&self, mood: u8) {
        self.1.store(mood, Ordering::SeqCst);
    }

    async fn is_there(&self) -> Result<(), EngineError> {
        while self.1.load(Ordering::SeqCst) == WAITS {
            tokio::task::yield_now().await;
        }
        if self.1.load(Ordering::SeqCst) == AWAY { Err("it is away".into()) } else { Ok(()) }
    }
}

impl Engine for Moody {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.is_there().await?;
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        self.is_there().await?;
        if self.1.load(Ordering::SeqCst) == READS {
            return Err("it only reads".into());
        }
        let swapped = self.0.swap(writes).await;
        if self.1.load(Ordering::SeqCst) == LEAVES {
            self.becomes(AWAY);
            return Err("the answer is lost".into());
        }
        swapped
    }
}

fn moody(engine: &Moody, clock: &ManualClock, most: usize, grace: Duration) -> Swap<Moody> {
    let milli = Duration::from_millis(1);
    let builder = by_hand(engine.clone(), clock).concurrency_lease(LONG);
    open(builder.background(most, grace).breaker(0, milli, milli))
}

/// Others can take `cost`, and no more, after one renewal.
fn is_free_after_a_renewal(other: &Swap<MadeUp>, clock: &ManualClock, cost: u64) {
    clock.advance(LONG / 4);
    until("the lost places to be free", || take(other, cost).is_admitted().then_some(()));
    assert!(!take(other, 1).is_admitted(), "what is still held stays held");
}

fn send_back<E: Engine>(store: &Swap<E>, cost: u64, outcome: &Outcome) {
    let charge = charge(cost);
    let (debit, receipt) = (charge.debits().next(), outcome.receipts().next());
    store.settle(debit.expect("one"), &receipt.expect("one"), 0);
}

fn store(engine: &MadeUp, clock: &ManualClock) -> Swap<MadeUp> {
    open(by_hand(engine.clone(), clock).concurrency_lease(LEASE))
}

#[test]
fn what_is_held_for_longer_than_the_lease_is_renewed() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let (holder, other) = (store(&engine, &clock), store(&engine, &clock));
    let held = take(&holder, 8);
    for _ in 0..12 {
        let before = engine.versions();
        // Near the heartbeat in small steps: a holder that waits for a processor meanwhile loses little of its lease.
        clock.advance(PAUSE * 9 / 10);
        until("the row to be renewed", || {
            clock.advance(PAUSE / 100);
            (engine.versions() != before).then_some(())
        });
        assert!(!take(&other, 1).is_admitted());
    }
    give_back(&holder, 8, &held);
    assert!(take(&other, 8).is_admitted());
    assert_eq!(holder.counts().places_lost, 0);
}

/// Takes a millisecond for each call.
struct Slow(MadeUp);

impl Engine for Slow {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.0.clock().advance(Duration::from_millis(1));
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        self.0.clock().advance(Duration::from_millis(1));
        self.0.swap(writes).await
    }
}

#[test]
fn a_place_is_renewed_at_each_heartbeat_however_long_a_call_takes() {
    let clock = ManualClock::new();
    let holder = open(by_hand(Slow(MadeUp::new(&clock)), &clock).concurrency_lease(LEASE));
    assert!(take(&holder, 8).is_admitted());
    let before = holder.counts().swaps;
    let begun = clock.now();
    for renewals in 1..=4 {
        clock.advance(PAUSE);
        until("a renewal", || {
            clock.advance(Duration::from_millis(1));
            (holder.counts().swaps >= before + renewals).then_some(())
        });
    }
    // One in each second heartbeat would take eight pauses.
    assert!(Duration::from_micros(clock.now() - begun) < 6 * PAUSE);
    assert_eq!(holder.counts().places_lost, 0);
}

#[test]
fn a_lease_without_an_end_is_kept_at_any_time() {
    let clock = ManualClock::at(Duration::ZERO);
    let engine = MadeUp::new(&clock);
    let store = open(by_hand(engine, &clock).concurrency_lease(Duration::MAX));
    assert!(take(&store, 8).is_admitted());
    assert!(!take(&store, 1).is_admitted());
}

#[test]
fn a_holder_that_is_gone_renews_nothing() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let (gone, other) = (store(&engine, &clock), store(&engine, &clock));
    assert!(take(&gone, 8).is_admitted());
    drop(gone);
    assert!(!take(&other, 1).is_admitted());
    clock.advance(LEASE);
    assert!(take(&other, 8).is_admitted());
}

/// Its clock stands still, and so does its work in the background.
#[test]
fn a_process_that_was_stopped_gives_back_nothing_that_is_another_s() {
    let (stopped, running) = (ManualClock::new(), ManualClock::new());
    let engine = MadeUp::new(&running);
    let (one, other) = (store(&engine, &stopped), store(&engine, &running));
    let lost = take(&one, 5);
    running.advance(LEASE);
    let others = take(&other, 5);
    assert!(others.is_admitted());
    stopped.advance(LEASE);
    give_back(&one, 5, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 3);
    let own = take(&one, 3);
    assert!(own.is_admitted());
    give_back(&one, 5, &lost);
    assert_eq!(left(&other, EIGHT, "alice"), 0);
    give_back(&one, 3, &own);
    give_back(&other, 5, &others);
    assert_eq!(left(&other, EIGHT, "alice"), 8);
}

#[test]
fn a_place_whose_return_found_no_room_is_free_after_a_renewal() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let waits = Moody::new(&engine);
    let ages = Duration::from_secs(3_000_000);
    let (holder, other) = (moody(&waits, &clock, 1, ages), store(&engine, &clock));
    // The room of a call is free a moment after its answer.
    let take_soon = |cost| until("room", || answer(holder.take(&charge(cost))).ok());
    let (kept, one, two) = (take_soon(2), take_soon(3), take_soon(3));
    settled(&holder);
    waits.becomes(WAITS);
    send_back(&holder, 3, &one);
    send_back(&holder, 3, &two);
    waits.becomes(WELL);
    settled(&holder);
    assert_eq!(holder.counts().settlements_dropped, 1);
    is_free_after_a_renewal(&other, &clock, 6);
    send_back(&holder, 2, &kept);
    settled(&holder);
    assert!(take(&other, 2).is_admitted());
    assert_eq!(holder.counts().places_lost, 0);
}

#[test]
fn a_place_whose_return_met_a_long_outage_is_free_after_a_renewal() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let leaves = Moody::new(&engine);
    let second = Duration::from_secs(1);
    let (holder, other) = (moody(&leaves, &clock, 64, second), store(&engine, &clock));
    let (_kept, one) = (take(&holder, 2), take(&holder, 6));
    leaves.becomes(AWAY);
    send_back(&holder, 6, &one);
    until("it to be given up", || {
        clock.advance(second / 10);
        (holder.counts().settlements_dropped == 1).then_some(())
    });
    leaves.becomes(WELL);
    is_free_after_a_renewal(&other, &clock, 6);
    assert_eq!(holder.counts().places_lost, 0);
}

/// Nobody was told that it has them.
#[test]
fn places_that_could_not_be_written_are_not_lost() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let reads = Moody::new(&engine);
    let holder = moody(&reads, &clock, 64, Duration::from_secs(3_000_000));
    reads.becomes(READS);
    for _ in 0..3 {
        assert!(answer(holder.take(&charge(2))).is_err());
    }
    reads.becomes(WELL);
    assert!(take(&holder, 8).is_admitted());
    assert_eq!(holder.counts().places_lost, 0);
}

#[test]
fn a_place_that_nobody_knows_of_is_free_after_a_renewal() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let leaves = Moody::new(&engine);
    let second = Duration::from_secs(1);
    let (holder, other) = (moody(&leaves, &clock, 64, second), store(&engine, &clock));
    let _kept = take(&holder, 2);
    leaves.becomes(LEAVES);
    assert!(answer(holder.take(&charge(6))).is_err());
    until("it to be given up", || {
        clock.advance(second / 10);
        (holder.counts().unanswered == 1).then_some(())
    });
    leaves.becomes(WELL);
    is_free_after_a_renewal(&other, &clock, 6);
    assert_eq!(holder.counts().places_lost, 0);
}
