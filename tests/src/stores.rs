//! A store that does what stores elsewhere do: answer later, never, or with an error.

use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_core::{Limit, Memory};

/// How a [`TestStore`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// As the memory does.
    AtOnce,
    /// As the memory does, through a future that is ready.
    Later,
    /// As the memory does, after this time of tokio.
    After(Duration),
    /// Not at all.
    Never,
    /// With an error.
    Fails,
    /// With an error, through a future that is ready.
    FailsLater,
}

/// A memory behind a [`Manner`]. Clones are the same store.
#[derive(Debug, Clone)]
pub struct TestStore {
    memory: Memory,
    manner: Arc<Mutex<Manner>>,
    keeps: fn(&Limit) -> bool,
}

impl TestStore {
    /// A store that answers in this manner.
    pub fn new(memory: Memory, manner: Manner) -> Self {
        Self { memory, manner: Arc::new(Mutex::new(manner)), keeps: |_| true }
    }

    /// A memory that cannot keep limits for which `keeps` returns false.
    pub fn keeping(memory: Memory, keeps: fn(&Limit) -> bool) -> Self {
        Self { keeps, ..Self::new(memory, Manner::AtOnce) }
    }

    /// Answers in this manner from now on.
    pub fn set(&self, manner: Manner) {
        *self.manner.lock().expect("no panic") = manner;
    }

    /// What is behind it.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    fn manner(&self) -> Manner {
        *self.manner.lock().expect("no panic")
    }

    fn answer(
        &self,
        ask: impl FnOnce(&Memory) -> Answer<<Memory as Store>::Future>,
    ) -> Answer<Later> {
        match self.manner() {
            Manner::AtOnce => Answer::Now(ask(&self.memory).now()),
            Manner::Later => Answer::Later(Box::pin(ready(ask(&self.memory).now()))),
            Manner::After(time) => {
                let outcome = ask(&self.memory).now();
                Answer::Later(Box::pin(async move {
                    tokio::time::sleep(time).await;
                    outcome
                }))
            }
            Manner::Never => Answer::Later(Box::pin(pending())),
            Manner::Fails => Answer::Now(Err(StoreError::unavailable("it is broken"))),
            Manner::FailsLater => Answer::Later(Box::pin(ready(Err(StoreError::too_slow())))),
        }
    }
}

type Later = Pin<Box<dyn Future<Output = Result<Outcome, StoreError>> + Send>>;

impl Store for TestStore {
    type Future = Later;

    fn take(&self, charge: &Charge) -> Answer<Later> {
        self.answer(|memory| memory.take(charge))
    }

    fn peek(&self, charge: &Charge) -> Answer<Later> {
        self.answer(|memory| memory.peek(charge))
    }

    fn reset(&self, charge: &Charge) -> Answer<Later> {
        self.answer(|memory| memory.reset(charge))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let has_decided =
            matches!(self.manner(), Manner::AtOnce | Manner::Later | Manner::After(_));
        assert!(has_decided, "this store has decided nothing, but is to settle {}", debit.limit);
        self.memory.settle(debit, receipt, spent);
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.memory.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.memory.follow_status(debit, status);
    }

    fn clock(&self) -> Clock {
        self.memory.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        if (self.keeps)(limit) {
            return self.memory.check(limit);
        }
        Err(LimitError::new("the store of this test does not keep it"))
    }
}
