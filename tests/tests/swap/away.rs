//! Engines that are away or do not answer.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::breaker::BreakerState;
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::{Engine, EngineError, Loaded, Swap, Swapped, Write};
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::engine::{Lies, MadeUp};
use crate::store::{by_hand, left, open, runtime, settled};

/// Accepts every call, and answers none.
struct Silent;

impl Engine for Silent {
    fn rows_at_once(&self) -> usize {
        1
    }

    async fn load(&self, _: &[Arc<str>]) -> Result<Loaded, EngineError> {
        pending().await
    }

    async fn swap(&self, _: &[Write]) -> Result<Swapped, EngineError> {
        pending().await
    }
}

/// Reads rows, and can write none: a database without room on its disk, or a replica.
struct ReadOnly(MadeUp);

impl Engine for ReadOnly {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.0.load(keys).await
    }

    async fn swap(&self, _: &[Write]) -> Result<Swapped, EngineError> {
        Err("it is read-only".into())
    }
}

/// Is there for one decision, of which it loses the answer.
struct Leaving(MadeUp, AtomicBool);

impl Engine for Leaving {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        if self.1.load(Ordering::Relaxed) {
            return Err("it is away".into());
        }
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        self.1.store(true, Ordering::Relaxed);
        self.0.swap(writes).await.and(Err("it is away".into()))
    }
}

/// Reads rows in a millisecond, and never answers a swap.
struct Stuck(MadeUp);

impl Engine for Stuck {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.0.clock().advance(Duration::from_millis(1));
        self.0.load(keys).await
    }

    async fn swap(&self, _: &[Write]) -> Result<Swapped, EngineError> {
        pending().await
    }
}

/// Loses the answer to its first swap.
struct Losing(MadeUp, AtomicBool);

impl Engine for Losing {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        let swapped = self.0.swap(writes).await;
        if self.1.swap(true, Ordering::Relaxed) { swapped } else { Err("it is lost".into()) }
    }
}

/// Panics after its first swap.
struct Panicking(MadeUp, AtomicBool);

impl Engine for Panicking {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        let swapped = self.0.swap(writes).await;
        assert!(self.1.swap(true, Ordering::Relaxed), "the first swap panics");
        swapped
    }
}

/// Is away while it is told to be.
#[derive(Clone)]
struct Away(MadeUp, Arc<AtomicBool>);

impl Away {
    fn is_here(&self) -> Result<(), EngineError> {
        if self.1.load(Ordering::Relaxed) { Err("it is away".into()) } else { Ok(()) }
    }
}

impl Engine for Away {
    fn rows_at_once(&self) -> usize {
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.is_here()?;
        self.0.load(keys).await
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        self.is_here()?;
        self.0.swap(writes).await
    }
}

fn charge(name: &str) -> Charge {
    Charge::of(Limit::per_minute(10), key(name), 1)
}

/// Asks, and turns the clock until there is an answer.
fn ask(store: &Swap<Silent>, clock: &ManualClock, name: &str) -> StoreError {
    let future = match store.take(&charge(name)) {
        Answer::Now(outcome) => return outcome.expect_err("nothing answers"),
        Answer::Later(future) => future,
    };
    let asked = runtime().spawn(future);
    until("the deadline", || {
        clock.advance(Duration::from_millis(5));
        asked.is_finished().then_some(())
    });
    runtime().block_on(asked).expect("no panic").expect_err("nothing answers")
}

#[test]
fn an_engine_that_does_not_answer_costs_the_deadline_five_times() {
    let clock = ManualClock::new();
    let hour = Duration::from_secs(3_600);
    let store = Swap::builder(Silent).clock(&clock).deadline(Duration::from_millis(50));
    let store = open(store.breaker(5, hour, hour));
    for number in 0..5 {
        let error = ask(&store, &clock, &number.to_string());
        assert!(error.is_too_slow(), "{error:?}");
    }
    until("the breaker to open", || (store.counts().breaker == BreakerState::Open).then_some(()));
    let Answer::Now(Err(error)) = store.take(&charge("alice")) else { panic!("no call is made") };
    assert!(!error.is_too_slow() && !error.is_full(), "{error:?}");
    assert_eq!(store.counts().breaker_openings, 1);
}

#[test]
fn an_engine_that_comes_back_is_asked_again() {
    let clock = ManualClock::new();
    let lies = Lies { away: 1_000, ..Lies::default() };
    let engine = MadeUp::new(&clock).lies(lies, 1);
    let second = Duration::from_secs(1);
    let store = open(by_hand(engine.clone(), &clock).breaker(5, second, second));
    until("the breaker to open", || {
        assert!(answer(store.take(&charge("alice"))).is_err());
        (store.counts().breaker == BreakerState::Open).then_some(())
    });
    engine.come_back();
    clock.advance(2 * second);
    assert!(answer(store.take(&charge("alice"))).expect("it is back").is_admitted());
    assert_eq!(store.counts().breaker, BreakerState::Closed);
    assert_eq!(store.counts().unanswered, 0);
}

#[test]
fn an_engine_that_reads_and_cannot_write_costs_five_failures() {
    let clock = ManualClock::new();
    let hour = Duration::from_secs(3_600);
    let store = open(by_hand(ReadOnly(MadeUp::new(&clock)), &clock).breaker(5, hour, hour));
    for number in 0..5 {
        assert_eq!(store.counts().breaker, BreakerState::Closed, "{number}");
        assert!(answer(store.take(&charge(&number.to_string()))).is_err());
    }
    until("the breaker to open", || (store.counts().breaker == BreakerState::Open).then_some(()));
    assert!(matches!(store.take(&charge("alice")), Answer::Now(Err(_))));
}

/// Waits for everything in the background, and turns the clock meanwhile.
fn flush_in_time<E: Engine>(store: &Swap<E>, clock: &ManualClock) {
    let flushed = runtime().spawn({
        let store = store.clone();
        async move { store.flush().await }
    });
    until("the background to end", || {
        clock.advance(Duration::from_millis(100));
        flushed.is_finished().then_some(())
    });
}

#[test]
fn waiting_for_the_background_ends_although_the_engine_stays_away() {
    let clock = ManualClock::new();
    let (milli, half_a_minute) = (Duration::from_millis(1), Duration::from_secs(30));
    let leaving = Leaving(MadeUp::new(&clock), AtomicBool::new(false));
    let builder = by_hand(leaving, &clock).breaker(0, milli, milli);
    let store = open(builder.background(4_096, half_a_minute));
    assert!(answer(store.take(&charge("alice"))).is_err());
    flush_in_time(&store, &clock);
    assert_eq!(store.counts().unanswered, 1);

    let builder = by_hand(ReadOnly(MadeUp::new(&clock)), &clock).breaker(0, milli, milli);
    let store = open(builder.background(4_096, half_a_minute));
    for number in 0..20 {
        assert!(answer(store.take(&charge(&(number % 3).to_string()))).is_err());
    }
    flush_in_time(&store, &clock);
    let counts = store.counts();
    assert_eq!(counts.unanswered, 20);
    // Nobody asks any more.
    clock.advance(half_a_minute);
    settled(&store);
    assert_eq!(store.counts(), counts);
}

/// However long the breaker waits between two tries.
#[test]
fn waiting_for_the_background_takes_no_longer_than_its_time() {
    let engine = ReadOnly(MadeUp::new(&ManualClock::new()));
    let (milli, day) = (Duration::from_millis(1), Duration::from_secs(86_400));
    let store = Swap::builder(engine).deadline(day).breaker(0, day, day);
    let store = open(store.background(4_096, 100 * milli));
    assert!(answer(store.take(&charge("alice"))).is_err());
    settled(&store);
    assert_eq!(store.counts().unanswered, 1);
}

/// The call keeps its place in the background until all of its limits are given back.
#[test]
fn a_lost_charge_of_two_limits_is_given_back_although_the_background_has_room_for_one() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let losing = Losing(engine.clone(), AtomicBool::new(false));
    let ages = Duration::from_secs(3_000_000);
    let store = open(by_hand(losing, &clock).background(1, ages));
    let mut charge = charge("alice");
    charge.add(Limit::per_hour(10), key("alice"), 1).expect("two limits");
    assert!(answer(store.take(&charge)).is_err());
    settled(&store);
    let other = open(by_hand(engine, &clock));
    for limit in [Limit::per_minute(10), Limit::per_hour(10)] {
        assert_eq!(left(&other, limit, "alice"), 10);
    }
    let counts = store.counts();
    assert_eq!((counts.given_back, counts.settlements_dropped), (1, 0));
}

/// The caller is told first, and the swap has its own deadline a millisecond later.
#[test]
fn a_decision_that_is_too_late_is_one_failure() {
    let clock = ManualClock::new();
    let (milli, hour) = (Duration::from_millis(1), Duration::from_secs(3_600));
    let store = Swap::builder(Stuck(MadeUp::new(&clock))).clock(&clock).deadline(50 * milli);
    let store = open(store.breaker(1, hour, hour).background(64, 1_000 * milli));
    let Answer::Later(future) = store.take(&charge("alice")) else { panic!("it is asked") };
    let asked = runtime().spawn(future);
    until("the swap", || (store.counts().swaps == 1).then_some(()));
    clock.advance(49 * milli);
    until("the deadline", || asked.is_finished().then_some(()));
    assert!(runtime().block_on(asked).expect("no panic").expect_err("no answer").is_too_slow());
    flush_in_time(&store, &clock);
    let counts = store.counts();
    assert_eq!((counts.failures, counts.breaker_openings), (1, 1));
}

#[test]
fn a_charge_of_an_engine_that_has_panicked_is_given_back() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let store = open(by_hand(Panicking(engine.clone(), AtomicBool::new(false)), &clock));
    let error = answer(store.take(&charge("alice"))).expect_err("it has panicked");
    assert!(!error.is_too_slow(), "{error:?}");
    settled(&store);
    let other = open(by_hand(engine, &clock));
    assert_eq!(left(&other, Limit::per_minute(10), "alice"), 10);
    assert_eq!(store.counts().given_back, 1);
}

#[test]
fn keys_that_are_digested_are_not_shown() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let store = open(by_hand(engine.clone(), &clock).digest_keys("a secret"));
    assert!(answer(store.take(&charge("alice"))).expect("an answer").is_admitted());
    let keys = engine.keys();
    assert!(keys.len() == 1 && !keys[0].contains("alice"), "{keys:?}");
    assert!(!format!("{store:?}").contains("secret"));
}

/// Eight others write the row before this process looks again, so that its own tag is no longer there.
#[test]
fn what_the_breaker_keeps_from_being_sent_is_given_back_later() {
    let (clock, away) = (ManualClock::new(), Arc::new(AtomicBool::new(false)));
    let milli = Duration::from_millis(1);
    let engine = MadeUp::new(&clock);
    let builder = by_hand(Away(engine.clone(), Arc::clone(&away)), &clock);
    let store = open(builder.breaker(1, milli, milli));
    let limit = Limit::per_minute(100);
    let charge = Charge::of(limit, key("alice"), 4);
    let taken = answer(store.take(&charge)).expect("an answer");
    away.store(true, Ordering::Relaxed);
    answer(store.take(&Charge::of(limit, key("bob"), 1))).expect_err("it is away");
    let swaps = store.counts().swaps;
    let (debit, receipt) = charge.debits().zip(taken.receipts()).next().expect("one");
    store.settle(debit, &receipt, 0);
    // The clock stands still, so that the breaker stays open while the settlement is tried.
    runtime().block_on(async { tokio::time::sleep(20 * milli).await });
    away.store(false, Ordering::Relaxed);
    for _ in 0..8 {
        let other = open(by_hand(engine.clone(), &clock));
        let one = Charge::of(limit, key("alice"), 1);
        assert!(answer(other.take(&one)).expect("an answer").is_admitted());
    }
    assert_eq!(store.counts().swaps, swaps, "nothing was sent");
    let given_back = until("the settlement", || {
        clock.advance(milli);
        (store.counts().settled > 0).then_some(left(&store, limit, "alice"))
    });
    assert_eq!((given_back, store.counts().settlements_dropped), (92, 0));
}

/// The time of a future begins with its first poll.
#[test]
fn a_future_that_is_polled_late_is_not_late() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock).rows_at_once(1);
    let store = open(Swap::builder(engine).clock(&clock).deadline(Duration::from_millis(50)));
    let mut charge = Charge::of(Limit::per_minute(5), key("alice"), 1);
    charge.add(Limit::per_hour(5), key("alice"), 1).expect("another limit");
    let Answer::Later(future) = store.take(&charge) else { panic!("it asks the engine") };
    clock.advance(Duration::from_secs(1));
    assert!(runtime().block_on(future).expect("an answer").is_admitted());
}

/// A replica whose clock is behind takes the place of the master, or the clock is corrected.
#[test]
fn a_clock_that_steps_back_by_seconds_bans_nobody() {
    for seconds in [2, 9, 11, 3_600] {
        let clock = ManualClock::at(Duration::from_secs(1_000_000));
        let store = open(Swap::builder(MadeUp::new(&clock)).clock(&clock));
        let limit = Limit::per_minute(5);
        let one = || answer(store.take(&Charge::of(limit, key("alice"), 1))).expect("an answer");
        for _ in 0..5 {
            assert!(one().is_admitted());
        }
        clock.set(Duration::from_secs(1_000_000 - seconds));
        let refused = one();
        let retry_after = refused.retry_after().expect("time alone makes room");
        assert!(retry_after <= Duration::from_secs(13), "{retry_after:?}");
        clock.advance(retry_after);
        assert!(one().is_admitted(), "{seconds} s");
        assert!(!one().is_admitted(), "{seconds} s");
    }
}
