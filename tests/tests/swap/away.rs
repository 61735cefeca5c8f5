//! Engines that are away or do not answer.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::breaker::BreakerState;
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::{Engine, EngineError, Loaded, Swap, Swapped, Write};
use sluicegate_tests::servers::until;
use sluicegate_tests::{answer, key};

use crate::engine::{Lies, MadeUp};
use crate::store::{by_hand, open, runtime};

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
fn keys_that_are_digested_are_not_shown() {
    let clock = ManualClock::new();
    let engine = MadeUp::new(&clock);
    let store = open(by_hand(engine.clone(), &clock).digest_keys("a secret"));
    assert!(answer(store.take(&charge("alice"))).expect("an answer").is_admitted());
    let keys = engine.keys();
    assert!(keys.len() == 1 && !keys[0].contains("alice"), "{keys:?}");
    assert!(!format!("{store:?}").contains("secret"));
}
