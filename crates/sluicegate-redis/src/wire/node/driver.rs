//! The tasks that drive connections, and which of them outlive their connection's replacement.

use std::sync::{Arc, Weak};

use redis::aio::MultiplexedConnection;
use tokio::task::{AbortHandle, JoinHandle};

/// A connection, and the task that drives it.
pub(super) struct OpenConnection {
    pub(super) wire: MultiplexedConnection,
    pub(super) driver: Driver,
}

/// The task that drives a connection. It is stopped when this is dropped: then the socket is closed, and every
/// command that waits for an answer fails.
#[derive(Debug)]
pub(crate) struct Driver(AbortHandle);

/// Replaced connections of one node on which late answers are still awaited.
#[derive(Debug, Default)]
pub(super) struct Retired(Vec<Weak<Driver>>);

/// How many are kept: the first, on which most commands were sent, and the last.
const KEPT: usize = 2;

impl Driver {
    pub(super) fn of(task: &JoinHandle<()>) -> Self {
        Self(task.abort_handle())
    }

    /// Whether the connection is broken: what is not sent yet will not be.
    pub(super) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    pub(super) fn close(&self) {
        self.0.abort();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.close();
    }
}

impl Retired {
    /// Keeps a connection for as long as an answer is awaited on it. Closes one if there are too many.
    pub(super) fn keep(&mut self, driver: &Arc<Driver>) {
        self.0.retain(|kept| kept.strong_count() > 0);
        if self.0.len() >= KEPT {
            if let Some(closed) = self.0.remove(KEPT - 1).upgrade() {
                closed.close();
            }
        }
        self.0.push(Arc::downgrade(driver));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver() -> (Arc<Driver>, JoinHandle<()>) {
        let task = tokio::spawn(std::future::pending());
        (Arc::new(Driver::of(&task)), task)
    }

    #[tokio::test]
    async fn the_first_and_the_last_replaced_connections_are_kept() {
        let mut retired = Retired::default();
        let (drivers, tasks): (Vec<_>, Vec<_>) = (0..5).map(|_| driver()).unzip();
        drivers.iter().for_each(|driver| retired.keep(driver));
        let mut kept = Vec::new();
        for task in tasks {
            tokio::task::yield_now().await;
            kept.push(!task.is_finished());
        }
        assert_eq!(kept, [true, false, false, false, true]);
    }

    #[tokio::test]
    async fn a_connection_without_awaited_answers_is_closed_and_frees_its_place() {
        let mut retired = Retired::default();
        let ((first, task), (second, other)) = (driver(), driver());
        retired.keep(&first);
        drop(first);
        assert!(task.await.expect_err("closed").is_cancelled());
        retired.keep(&second);
        assert_eq!(retired.0.len(), 1);
        assert!(!other.is_finished());
    }
}
