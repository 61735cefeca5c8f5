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
use sluicegate_tests::conformance;

fn memory(clock: &ManualClock) -> Memory {
    Memory::builder().clock(clock).capacity(1_000).build()
}

conformance!(a_memory, memory);
conformance!(a_memory_of_one_key_and_a_little, |clock| {
    Memory::builder().clock(clock).capacity(20).build()
});
conformance!(a_shared_memory, |clock| Arc::new(memory(clock)));
conformance!(a_governor, |clock| Governor::with_clock(1_000, clock));
conformance!(a_remote_store, |clock| Remote(memory(clock)));
conformance!(two_stores, |clock| Fallback(memory(clock), memory(clock)));
conformance!(a_remote_store_and_a_memory, |clock| Fallback(Remote(memory(clock)), memory(clock)));
conformance!(a_broken_store_and_a_memory, |clock| Fallback(Broken::AtOnce, memory(clock)));
conformance!(a_broken_remote_store_and_a_memory, |clock| {
    Fallback(Fallback(Broken::Later, Broken::AtOnce), memory(clock))
});
conformance!(a_memory_behind_everything_that_is_broken, |clock| {
    Fallback(Broken::AtOnce, Fallback(Broken::Later, Remote(memory(clock))))
});

/// Answers like a remote store: not at the first poll.
#[derive(Clone)]
struct Remote(Memory);

struct Request {
    store: Memory,
    charge: Charge,
    ask: fn(&Memory, &Charge) -> Answer<<Memory as Store>::Future>,
    sent: bool,
}

impl Future for Request {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.sent {
            self.sent = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready((self.ask)(&self.store, &self.charge).now())
    }
}

impl Remote {
    fn send(
        &self,
        charge: &Charge,
        ask: fn(&Memory, &Charge) -> Answer<<Memory as Store>::Future>,
    ) -> Answer<Request> {
        let (store, charge) = (self.0.clone(), charge.clone());
        Answer::Later(Request { store, charge, ask, sent: false })
    }
}

impl Store for Remote {
    type Future = Request;

    fn take(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::take)
    }

    fn peek(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::peek)
    }

    fn reset(&self, charge: &Charge) -> Answer<Request> {
        self.send(charge, Memory::reset)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.0.settle(debit, receipt, spent);
    }

    fn clock(&self) -> Clock {
        self.0.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.0.check(limit)
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.0.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.0.follow_status(debit, status);
    }
}

/// Always answers with an error.
#[derive(Clone, Copy)]
enum Broken {
    AtOnce,
    Later,
}

impl Broken {
    fn fail(self) -> Answer<std::future::Ready<Result<Outcome, StoreError>>> {
        match self {
            Self::AtOnce => Answer::Now(Err(StoreError::unavailable("it is broken"))),
            Self::Later => Answer::Later(std::future::ready(Err(StoreError::too_slow()))),
        }
    }
}

impl Store for Broken {
    type Future = std::future::Ready<Result<Outcome, StoreError>>;

    fn take(&self, _: &Charge) -> Answer<Self::Future> {
        self.fail()
    }

    fn peek(&self, _: &Charge) -> Answer<Self::Future> {
        self.fail()
    }

    fn reset(&self, _: &Charge) -> Answer<Self::Future> {
        self.fail()
    }

    fn settle(&self, debit: &Debit, _: &Receipt, _: u64) {
        panic!("this store has not decided anything, but is asked to settle {}", debit.limit);
    }

    fn follow(&self, _: &Debit, _: u64, _: u64) {}

    fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

    fn clock(&self) -> Clock {
        Clock::machine()
    }

    fn check(&self, _: &Limit) -> Result<(), LimitError> {
        Ok(())
    }
}
