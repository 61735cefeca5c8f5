//! The tasks that drive connections, which of them outlive their connection's replacement, and how soon a lost connection
//! is replaced.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::guard::Traffic;
use crate::runtime::{Runtime, before};
use sluicegate_core::adapter::breaker::Backoff;

/// A connection, and the task that drives it.
pub(super) struct OpenConnection {
    pub(super) wire: MultiplexedConnection,
    pub(super) driver: Driver,
    pub(super) traffic: Arc<Traffic>,
}

/// The task that drives a connection. It is stopped when this is dropped: then the socket is closed, and every
/// command that waits for an answer fails.
#[derive(Debug)]
pub(crate) struct Driver {
    task: AbortHandle,
    /// Its sender belongs to the task and ends with it.
    end: watch::Receiver<()>,
}

/// Replaced connections of one node on which late answers are still awaited.
#[derive(Debug, Default)]
pub(super) struct OldConnections(Vec<Weak<Driver>>);

/// How many are kept: the first, on which most commands were sent, and the last.
const KEPT: usize = 2;

impl Driver {
    /// `on_end` is called when the connection has ended by itself, whatever the reason, and not when it is closed here.
    pub(super) fn start(
        runtime: &Runtime,
        driving: impl Future<Output = ()> + Send + 'static,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (alive, end) = watch::channel(());
        let task = runtime.spawn(async move {
            driving.await;
            // Before `on_end`: a node that is not told, because it does not use the connection yet, sees the end by this.
            drop(alive);
            on_end();
        });
        Self { task: task.abort_handle(), end }
    }

    /// The answer to a command, or an error when the task has ended.
    ///
    /// The client library hands commands to the task through a channel of tokio. A command that is sent while the task
    /// ends may stay in that channel: it is neither sent to the server nor dropped, so its answer never comes.
    pub(super) async fn answer<T>(
        &self,
        answer: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let mut end = self.end.clone();
        let ended = async {
            let _ = end.changed().await;
        };
        let closed = || Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
        before(ended, answer).await.unwrap_or_else(closed)
    }

    /// Whether the connection is broken: what is not sent yet will not be.
    pub(super) fn is_finished(&self) -> bool {
        self.end.has_changed().is_err()
    }

    pub(super) fn close(&self) {
        self.task.abort();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.close();
    }
}

impl OldConnections {
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

/// A connection that lasted this long, in microseconds, and on which the server answered, was a good one. Those are
/// replaced at once, so no more than four times a second.
const STEADY: u64 = 250_000;

/// How often the first pause is doubled, at most, if the server answers and then closes the connection.
const MAX_DOUBLINGS: u32 = 4;

/// Counts useless connections in a row: attempts that failed, and connections that brought only errors. Pauses grow
/// with the count. A successful connect alone does not reset it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FailureStreak {
    useless: u32,
}

/// How a lost connection did.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionHistory {
    /// How long it lasted, in microseconds.
    pub(super) lasted: u64,
    /// Whether the server answered on it in time.
    pub(super) answered: bool,
}

impl FailureStreak {
    /// How long to wait before a lost connection is replaced. The first time not at all: its name may point to
    /// another server by now.
    pub(super) fn lost(&mut self, history: ConnectionHistory, backoff: Backoff) -> Duration {
        if history.answered && history.lasted >= STEADY {
            self.useless = 0;
        }
        let before = self.useless;
        self.useless = before.saturating_add(1);
        match before {
            0 => Duration::ZERO,
            _ if history.answered => backoff.after(before.min(MAX_DOUBLINGS)),
            _ => backoff.after(before),
        }
    }

    /// How long to wait after an attempt that failed.
    pub(super) fn failed(&mut self, backoff: Backoff) -> Duration {
        self.useless = self.useless.saturating_add(1);
        backoff.after(self.useless)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_core::clock::Clock;

    use super::*;

    fn driver() -> Arc<Driver> {
        let runtime = Runtime::new(Clock::default());
        Arc::new(Driver::start(&runtime, std::future::pending(), || ()))
    }

    #[tokio::test]
    async fn the_first_and_the_last_replaced_connections_are_kept() {
        let mut retired = OldConnections::default();
        let drivers: Vec<_> = (0..5).map(|_| driver()).collect();
        drivers.iter().for_each(|driver| retired.keep(driver));
        tokio::task::yield_now().await;
        let kept: Vec<_> = drivers.iter().map(|driver| !driver.is_finished()).collect();
        assert_eq!(kept, [true, false, false, false, true]);
    }

    #[tokio::test]
    async fn a_connection_without_awaited_answers_is_closed_and_frees_its_place() {
        let mut retired = OldConnections::default();
        let (first, second) = (driver(), driver());
        retired.keep(&first);
        let mut end = first.end.clone();
        drop(first);
        assert!(end.changed().await.is_err(), "closed");
        retired.keep(&second);
        assert_eq!(retired.0.len(), 1);
        assert!(!second.is_finished());
    }

    #[tokio::test]
    async fn a_command_that_the_task_never_sees_fails_when_the_task_ends() {
        let driver = driver();
        let never = driver.answer(std::future::pending::<RedisResult<()>>());
        let (answer, ()) = tokio::join!(never, async { driver.close() });
        assert!(answer.expect_err("closed").is_connection_dropped());
        let late = driver.answer(async { Ok(1) }).await;
        assert_eq!(late.expect("an answer that has come counts"), 1);
    }

    #[tokio::test]
    async fn the_end_is_told_where_the_connection_ends_and_not_where_it_is_closed() {
        let runtime = Runtime::new(Clock::default());
        for ends in [true, false] {
            let (told, mut hears) = tokio::sync::oneshot::channel();
            let driving = async move {
                if !ends {
                    std::future::pending::<()>().await;
                }
            };
            let driver = Driver::start(&runtime, driving, || told.send(()).expect("somebody"));
            if !ends {
                driver.close();
            }
            let mut end = driver.end.clone();
            assert!(end.changed().await.is_err() && driver.is_finished());
            tokio::task::yield_now().await;
            assert_eq!(hears.try_recv().is_ok(), ends);
        }
    }

    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(20), longest: Duration::from_secs(2) };

    const USELESS: ConnectionHistory = ConnectionHistory { lasted: 1_000, answered: false };

    #[test]
    fn connections_that_bring_only_errors_are_replaced_less_and_less_often() {
        let mut redial = FailureStreak::default();
        assert_eq!(
            redial.lost(USELESS, BACKOFF),
            Duration::ZERO,
            "a promoted replica is found at once"
        );
        let time: Duration = (0..15).map(|_| redial.lost(USELESS, BACKOFF)).sum();
        assert!(time > Duration::from_secs(8), "15 connections within {time:?}");
        assert!(redial.lost(USELESS, BACKOFF) >= Duration::from_secs(1));
    }

    #[test]
    fn a_server_that_closes_after_each_answer_is_connected_to_about_ten_times_a_second() {
        let mut redial = FailureStreak::default();
        let history = ConnectionHistory { lasted: 1_000, answered: true };
        let pauses: Vec<_> = (0..100).map(|_| redial.lost(history, BACKOFF)).collect();
        assert!(pauses.iter().sum::<Duration>() > Duration::from_secs(8));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_millis(160)));
    }

    #[test]
    fn a_connection_that_lasted_is_replaced_at_once() {
        let mut redial = FailureStreak::default();
        for _ in 0..20 {
            redial.failed(BACKOFF);
        }
        let history = ConnectionHistory { lasted: STEADY, answered: true };
        assert_eq!(redial.lost(history, BACKOFF), Duration::ZERO);
        assert!(redial.failed(BACKOFF) <= Duration::from_millis(40));
    }

    #[test]
    fn a_connection_without_a_single_answer_was_useless() {
        let mut redial = FailureStreak::default();
        let history = ConnectionHistory { lasted: 10 * STEADY, answered: false };
        redial.lost(history, BACKOFF);
        assert!(redial.lost(history, BACKOFF) > Duration::ZERO);
    }
}
