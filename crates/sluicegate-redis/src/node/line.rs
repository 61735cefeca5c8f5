//! A connection, and the task that drives it.

use std::sync::{Arc, Weak};

use redis::aio::MultiplexedConnection;
use tokio::task::{AbortHandle, JoinHandle};

/// A connection, and the task that drives it, which ends with this: then all that wait for an answer are told
/// that there will be none, and the socket is closed.
pub(super) struct Line {
    pub(super) wire: MultiplexedConnection,
    pub(super) hold: Hold,
}

/// Keeps a connection open. Once the last one is dropped, it is closed.
#[derive(Debug)]
pub(crate) struct Hold(AbortHandle);

/// Connections of one node that have been given up, and on which answers are awaited that may come yet.
#[derive(Debug, Default)]
pub(super) struct Retired(Vec<Weak<Hold>>);

/// As many are kept: the first one, on which most questions were asked, and the last one.
const KEPT: usize = 2;

impl Line {
    pub(super) fn new(wire: MultiplexedConnection, driver: &JoinHandle<()>) -> Self {
        Self { wire, hold: Hold(driver.abort_handle()) }
    }
}

impl Hold {
    pub(super) fn close(&self) {
        self.0.abort();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.close();
    }
}

impl Retired {
    /// Keeps one for as long as somebody waits on it, unless there are too many.
    pub(super) fn keep(&mut self, line: &Arc<Hold>) {
        self.0.retain(|kept| kept.strong_count() > 0);
        if self.0.len() >= KEPT {
            if let Some(closed) = self.0.remove(KEPT - 1).upgrade() {
                closed.close();
            }
        }
        self.0.push(Arc::downgrade(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold() -> (Arc<Hold>, JoinHandle<()>) {
        let driver = tokio::spawn(std::future::pending());
        (Arc::new(Hold(driver.abort_handle())), driver)
    }

    #[tokio::test]
    async fn of_connections_that_are_given_up_the_first_and_the_last_are_kept() {
        let mut retired = Retired::default();
        let (holds, drivers): (Vec<_>, Vec<_>) = (0..5).map(|_| hold()).unzip();
        holds.iter().for_each(|hold| retired.keep(hold));
        let mut kept = Vec::new();
        for driver in drivers {
            tokio::task::yield_now().await;
            kept.push(!driver.is_finished());
        }
        assert_eq!(kept, [true, false, false, false, true]);
    }

    #[tokio::test]
    async fn one_that_nobody_waits_on_is_closed_and_leaves_its_place() {
        let mut retired = Retired::default();
        let ((first, driver), (second, other)) = (hold(), hold());
        retired.keep(&first);
        drop(first);
        assert!(driver.await.expect_err("closed").is_cancelled());
        retired.keep(&second);
        assert_eq!(retired.0.len(), 1);
        assert!(!other.is_finished());
    }
}
