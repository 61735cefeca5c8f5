//! What callers wait for, and how they wait.

use std::fmt;
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Outcome, Reservation};
use sluicegate_core::store::StoreError;
use tokio::sync::oneshot;

use crate::decide::Job;
use crate::engine::Engine;
use crate::queue::Key;
use crate::runtime::before;
use crate::shared::Shared;

/// What a caller is told.
pub(crate) type Reply = Result<Outcome, StoreError>;

/// A job, its rows, and who waits for it.
pub(crate) struct Entry {
    pub(crate) job: Job,
    pub(crate) rows: Vec<Key>,
    /// `None` for work in the background.
    pub(crate) caller: Option<oneshot::Sender<Reply>>,
    /// What was decided for the last swap, while it is not known whether that happened.
    pub(crate) tried: Option<Option<Outcome>>,
    /// When work in the background is given up, by the store's clock.
    pub(crate) until: u64,
    /// How often work in the background has failed.
    pub(crate) failed: u32,
    pub(crate) guard: Option<Arc<Reservation>>,
}

impl Entry {
    /// Work for which no caller waits.
    pub(crate) fn background(
        job: Job,
        rows: Vec<Key>,
        (until, guard): (u64, Option<Arc<Reservation>>),
    ) -> Self {
        Self { job, rows, caller: None, tried: None, until, failed: 0, guard }
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_gone(&self, now: u64) -> bool {
        match &self.caller {
            Some(caller) => caller.is_closed(),
            None => self.until < now,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("job", &self.job).finish_non_exhaustive()
    }
}

/// A place for a decision, and for giving back what it charged.
pub(crate) fn reserve<E>(shared: &Shared<E>) -> Result<Arc<Reservation>, StoreError> {
    shared.background.call().map(Arc::new).ok_or_else(|| {
        shared.counters.failures.add(1);
        StoreError::unavailable("too many calls of the engine are under way")
    })
}

/// Has a job done whose rows are swapped at once, within the deadline.
pub(crate) async fn ask<E: Engine>(
    shared: Arc<Shared<E>>,
    job: Job,
    rows: Vec<Key>,
    guard: Arc<Reservation>,
) -> Reply {
    let (caller, receiver) = oneshot::channel();
    let charge = match &job {
        Job::Take(charge) => Some(charge.clone()),
        _ => None,
    };
    let late = shared.runtime.sleep(shared.deadline);
    let entry = Entry {
        job,
        rows,
        caller: Some(caller),
        tried: None,
        until: u64::MAX,
        failed: 0,
        guard: Some(Arc::clone(&guard)),
    };
    let mut waiting = Waiting { shared, charge, receiver, guard, is_answered: false };
    waiting.shared.push(entry);
    match before(late, &mut waiting.receiver).await {
        Some(reply) => {
            waiting.is_answered = true;
            reply.unwrap_or_else(|_| Err(StoreError::unavailable("the runtime ends")))
        }
        None => {
            // After this, either an answer is there, or the flight finds nobody who waits. A failure is counted where the
            // caller is told of it: by the flight, or here.
            waiting.receiver.close();
            if let Ok(reply) = waiting.receiver.try_recv() {
                waiting.is_answered = true;
                return reply;
            }
            waiting.shared.counters.failures.add(1);
            Err(StoreError::too_slow())
        }
    }
}

/// Waits for an answer. If it is dropped before, what was charged is given back.
struct Waiting<E: Engine> {
    shared: Arc<Shared<E>>,
    charge: Option<Charge>,
    receiver: oneshot::Receiver<Reply>,
    guard: Arc<Reservation>,
    is_answered: bool,
}

impl<E: Engine> Drop for Waiting<E> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.guard.leave();
        self.receiver.close();
        // It may have been answered a moment ago.
        if let (Ok(Ok(outcome)), Some(charge)) = (self.receiver.try_recv(), &self.charge) {
            self.shared.give_back(charge, &outcome, Some(&self.guard));
        }
    }
}
