use std::fmt;
use std::sync::Arc;

use sluicegate_core::adapter::{Outcome, Reservation};
use sluicegate_core::store::StoreError;
use tokio::sync::oneshot;

use crate::decide::Job;
use crate::queue::Key;

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
