//! The conformance suite, for the stores of `sluicegate-core` and for combinations of them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{Fallback, Store, StoreError};
use sluicegate_core::{Limit, ManualClock, Memory};
use sluicegate_governor::Governor;
use sluicegate_tests::conformance::settling;
use sluicegate_tests::stores::{Manner, TestStore};
use sluicegate_tests::{Subject, conformance};

fn memory(clock: &ManualClock) -> Memory {
    Memory::builder().clock(clock).capacity(1_000).build()
}

conformance!(a_memory, memory);
conformance!(a_memory_of_one_key_and_a_little, |clock| {
    Memory::builder().clock(clock).capacity(20).build()
});
conformance!(a_shared_memory, |clock| Arc::new(memory(clock)));
conformance!(a_governor, |clock| Governor::with_clock(1_000, clock));
conformance!(a_remote_store, remote);
conformance!(two_stores, |clock| Fallback(memory(clock), memory(clock)));
conformance!(a_remote_store_and_a_memory, |clock| Fallback(remote(clock), memory(clock)));
conformance!(a_broken_store_and_a_memory, |clock| Fallback(broken(Manner::Fails), memory(clock)));
conformance!(a_broken_remote_store_and_a_memory, |clock| {
    Fallback(Fallback(broken(Manner::FailsLater), broken(Manner::Fails)), memory(clock))
});
conformance!(a_memory_behind_everything_that_is_broken, |clock| {
    Fallback(broken(Manner::Fails), Fallback(broken(Manner::FailsLater), remote(clock)))
});

/// A store that has decided nothing: it panics if it is to settle anything.
fn broken(manner: Manner) -> TestStore {
    TestStore::new(Memory::with_capacity(1), manner)
}

/// A store whose charge nobody gives back would pass every other scenario.
#[test]
#[should_panic(expected = "for alice")]
fn a_store_that_keeps_what_nobody_waits_for_is_found() {
    let forgetful = |clock: &ManualClock| Remote { gives_back: false, ..remote(clock) };
    settling::what_nobody_waits_for_is_given_back(&Subject::new(forgetful, |_| {}));
}

fn remote(clock: &ManualClock) -> Remote {
    Remote { store: memory(clock), gives_back: true }
}

/// Answers like a remote store: it decides at the first poll, and answers at the second.
#[derive(Clone)]
struct Remote {
    store: Memory,
    /// Whether it gives back a charge whose answer nobody has heard.
    gives_back: bool,
}

struct Request {
    remote: Remote,
    charge: Charge,
    ask: fn(&Memory, &Charge) -> Answer<<Memory as Store>::Future>,
    is_charge: bool,
    answer: Option<Result<Outcome, StoreError>>,
}

impl Future for Request {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                self.answer = Some((self.ask)(&self.remote.store, &self.charge).now());
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let Some(Ok(outcome)) = self.answer.take() else { return };
        if self.is_charge && self.remote.gives_back && outcome.is_admitted() {
            for (debit, receipt) in self.charge.debits().zip(outcome.receipts()) {
                self.remote.store.settle(debit, &receipt, 0);
            }
        }
    }
}

impl Remote {
    fn send(
        &self,
        charge: &Charge,
        ask: fn(&Memory, &Charge) -> Answer<<Memory as Store>::Future>,
        is_charge: bool,
    ) -> Answer<Request> {
        let (remote, charge) = (self.clone(), charge.clone());
        Answer::Later(Request { remote, charge, ask, is_charge, answer: None })
    }
}

impl Store for Remote {
    type Future = Request;

    fn take(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::take, true)
    }

    fn peek(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::peek, false)
    }

    fn reset(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::reset, false)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.store.settle(debit, receipt, spent);
    }

    fn clock(&self) -> Clock {
        self.store.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.store.check(limit)
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.store.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.store.follow_status(debit, status);
    }
}
