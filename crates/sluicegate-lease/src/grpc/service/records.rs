use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::Status;

use crate::grpc::mastership::Elected;
use crate::pool::Change;

/// Who has come and gone, in order, until it is written down.
#[derive(Debug, Default)]
pub(super) struct Records {
    queue: Mutex<Queue>,
    /// One at a time writes.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Queue {
    /// May have been written already, at least in part.
    first: Vec<Change>,
    rest: Vec<Change>,
}

/// With more to write down, requests are not answered.
const MAX_UNWRITTEN: usize = 100_000;

impl Records {
    /// Returns whether there are any.
    pub(super) fn add(&self, changes: impl Iterator<Item = Change>) -> bool {
        let mut changes = changes.peekable();
        let is_some = changes.peek().is_some();
        if is_some {
            self.queue().rest.extend(changes);
        }
        is_some
    }

    pub(super) fn clear(&self) {
        let mut queue = self.queue();
        queue.first.clear();
        queue.rest.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue().len() > MAX_UNWRITTEN
    }

    /// Waits until everything is written down.
    pub(super) async fn write(&self, mastership: &dyn Elected) -> Result<(), Status> {
        if self.queue().len() == 0 {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        // If this is not waited for, what was being written is written again.
        loop {
            let next = self.queue().next();
            let Some(changes) = next else { return Ok(()) };
            mastership.record(changes).await.map_err(|error| {
                Status::unavailable(format!("the client could not be written down: {error}"))
            })?;
            self.queue().first.clear();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    fn next(&mut self) -> Option<Vec<Change>> {
        if self.first.is_empty() {
            std::mem::swap(&mut self.first, &mut self.rest);
        }
        (!self.first.is_empty()).then(|| self.first.clone())
    }
}
