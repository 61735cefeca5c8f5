use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome};
use sluicegate_core::key::{KeyBuf, Part};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Decision, Limit, ManualClock};

/// A store under test, and its clock.
#[derive(Debug)]
pub struct Subject<S> {
    /// The manual clock.
    pub clock: ManualClock,
    /// The store.
    pub store: S,
    settled: fn(&S),
}

impl<S: Store> Subject<S> {
    /// A fresh store made by `factory`. `settled` returns when everything that the store was told to settle has
    /// arrived: a remote store sends it in the background.
    pub fn new(factory: impl Fn(&ManualClock) -> S, settled: fn(&S)) -> Self {
        let clock = ManualClock::new();
        Self { store: factory(&clock), clock, settled }
    }

    /// Whether the store can keep this limit. A store that cannot has to say so twice: when it is asked with `check`,
    /// and when it is charged.
    pub fn keeps(&self, limit: Limit) -> bool {
        if self.store.check(&limit).is_ok() {
            return true;
        }
        let charged = answer(self.store.take(&Charge::of(limit, key("unsupported"), 1)));
        let error = charged.expect_err("a limit that `check` refuses cannot be charged");
        assert!(error.is_unsupported(), "{error}");
        eprintln!("skipped for this store, which refuses it: {limit}");
        false
    }

    /// Charges, and expects an answer.
    pub fn take(&self, charge: &Charge) -> Decision {
        answer(self.store.take(charge)).expect("the store answers").decision(charge)
    }

    /// Charges `cost` to `limit` on the key `name`.
    pub fn spend(&self, limit: Limit, name: &str, cost: u64) -> Decision {
        self.take(&Charge::of(limit, key(name), cost))
    }

    /// Whether one more request is admitted by `limit` on the key `name`. If so, it is charged.
    pub fn admits(&self, limit: Limit, name: &str) -> bool {
        self.spend(limit, name, 1).is_admitted()
    }

    /// What a take would answer.
    pub fn peek(&self, charge: &Charge) -> Decision {
        answer(self.store.peek(charge)).expect("the store answers").decision(charge)
    }

    /// How much is left of `limit` on the key `name`.
    pub fn remaining(&self, limit: Limit, name: &str) -> u64 {
        let decision = self.peek(&Charge::of(limit, key(name), 1));
        decision.remaining().expect("one limit")
    }

    /// Forgets what was spent.
    pub fn reset(&self, charge: &Charge) -> Decision {
        answer(self.store.reset(charge)).expect("the store answers").decision(charge)
    }

    /// Settles an admitted charge to `spent` of each limit.
    pub fn settle(&self, charge: &Charge, decision: &Decision, spent: impl Fn(&Debit) -> u64) {
        for (debit, status) in charge.debits().zip(decision.statuses()) {
            self.store.settle(debit, &status.receipt, spent(debit));
        }
        (self.settled)(&self.store);
    }

    /// Charges, and leaves after the answer was polled so many times. If it has come by then, all of it is given back.
    pub fn leave(&self, charge: &Charge, polls: usize) {
        match self.store.take(charge) {
            Answer::Now(outcome) => self.give_back(charge, outcome),
            Answer::Later(future) => {
                let mut future = Box::pin(future);
                let mut cx = Context::from_waker(Waker::noop());
                for _ in 0..polls {
                    if let Poll::Ready(outcome) = future.as_mut().poll(&mut cx) {
                        return self.give_back(charge, outcome);
                    }
                    // A store that asks one server has decided when this is answered.
                    self.peek(charge);
                }
                drop(future);
            }
        }
        (self.settled)(&self.store);
    }

    fn give_back(&self, charge: &Charge, outcome: Result<Outcome, StoreError>) {
        let decision = outcome.expect("the store answers").decision(charge);
        self.settle(charge, &decision, |_| 0);
    }

    /// Turns the clock.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

/// A key of one part.
pub fn key(name: &str) -> KeyBuf {
    let mut key = KeyBuf::new();
    name.write(&mut key);
    key
}

/// The answer of a store, awaited if necessary.
///
/// # Errors
///
/// The error that the store reports.
pub fn answer<F>(answer: Answer<F>) -> Result<Outcome, StoreError>
where
    F: Future<Output = Result<Outcome, StoreError>>,
{
    match answer {
        Answer::Now(outcome) => outcome,
        Answer::Later(future) => block_on(future),
    }
}

/// Runs a future on this thread, which is parked while the future waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
