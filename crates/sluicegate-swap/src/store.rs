use std::fmt;
use std::sync::Arc;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{BoxStoreFuture, Store, StoreError};

use crate::across;
use crate::counts::SwapCounts;
use crate::decide::{Job, refusal};
use crate::engine::Engine;
use crate::entry::{ask, reserve};
use crate::queue::MOST_ROWS;
use crate::runtime::before;
use crate::shared::Shared;

/// A store in an [`Engine`] that any number of processes share. Clones are the same store.
///
/// # Runtime
///
/// Calls run on the tokio runtime in which the store is made, or else on the first in which it is used. That runtime
/// needs its timer enabled, and has to outlive the use of the store. Any thread can use the store.
pub struct Swap<E>(pub(crate) Arc<Shared<E>>);

impl<E: Engine> Swap<E> {
    /// What the store has done so far.
    pub fn counts(&self) -> SwapCounts {
        let mut counts = SwapCounts { breaker: self.0.breaker.state(), ..SwapCounts::default() };
        self.0.counters.read(&mut counts);
        counts
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.0.engine
    }

    /// Waits for everything in the background: settlements, and charges that nobody waits for. Call it before the process
    /// ends. Each takes at most the time set by [`background`](crate::SwapBuilder::background), 30 s by default.
    pub async fn flush(&self) {
        self.0.background.idle().await;
    }

    fn call(&self, job: fn(Charge) -> Job, charge: &Charge) -> Answer<BoxStoreFuture> {
        if charge.is_empty() {
            return Answer::Now(Ok(Outcome::free()));
        }
        let shared = &self.0;
        let failure = if shared.runtime.handle().is_none() {
            "make the store, or use it for the first time, inside a tokio runtime"
        } else if shared.breaker.is_shut(shared.runtime.clock.now()) {
            "the engine failed repeatedly and its breaker is open"
        } else {
            let rows = shared.keys(charge);
            let (shared, charge) = (Arc::clone(shared), charge.clone());
            let rows_at_once = shared.engine.rows_at_once().min(MOST_ROWS);
            return Answer::Later(if rows.len() > rows_at_once {
                Box::pin(async move {
                    let late = shared.runtime.sleep(shared.deadline);
                    let counting = Arc::clone(&shared);
                    let answer = across::decide(shared, job, (charge, rows), rows_at_once);
                    before(late, answer).await.unwrap_or_else(|| {
                        counting.counters.failures.add(1);
                        Err(StoreError::too_slow())
                    })
                })
            } else {
                Box::pin(async move {
                    let guard = reserve(&shared)?;
                    ask(shared, job(charge), rows, guard).await
                })
            });
        };
        shared.counters.failures.add(1);
        Answer::Now(Err(StoreError::unavailable(failure)))
    }

    /// The refusal of rows that are remembered.
    fn recall(&self, charge: &Charge) -> Option<Outcome> {
        let shared = &self.0;
        if shared.refusals.is_zero() || charge.is_empty() {
            return None;
        }
        let (keys, at) = (shared.keys(charge), shared.runtime.clock.now());
        let queue = shared.queue();
        let known = keys.iter().map(|key| queue.known(key)).collect::<Option<Vec<_>>>()?;
        let is_fresh = |learnt: u64| u128::from(at.abs_diff(learnt)) < shared.refusals.as_micros();
        let rows =
            known.iter().filter(|known| is_fresh(known.learnt)).map(|known| Arc::clone(&known.row));
        let rows: Vec<_> = rows.collect();
        drop(queue);
        let rows: Vec<_> = rows.iter().map(|row| &**row).collect();
        if rows.len() < keys.len() {
            return None;
        }
        let refused = refusal(charge, &rows, shared.bounds())?;
        shared.counters.refused_locally.add(1);
        Some(refused)
    }
}

/// Nothing is asked before the first poll of a future, which answers within the deadline. If it is dropped before it is
/// ready, what was charged is given back in the background.
impl<E: Engine> Store for Swap<E> {
    type Future = BoxStoreFuture;

    fn take(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        match self.recall(charge) {
            Some(refusal) => Answer::Now(Ok(refusal)),
            None => self.call(Job::Take, charge),
        }
    }

    fn peek(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.call(Job::Peek, charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.call(Job::Reset, charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.0.settle(debit, receipt, spent);
    }

    /// Does nothing: the engine is told by the store that decides.
    fn follow(&self, _: &Debit, _: u64, _: u64) {}

    /// Does nothing, as [`follow`](Self::follow).
    fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

    fn clock(&self) -> Clock {
        self.0.runtime.clock.clone()
    }

    /// # Errors
    ///
    /// When the limit is a log that is [too long](Limit::check_length), because each decision reads and writes all of it.
    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        limit.check_length()
    }
}

impl<E> Clone for Swap<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> fmt::Debug for Swap<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
