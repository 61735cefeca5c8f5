use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;

use crate::error::Refused;

/// Says when something may go.
pub trait Reserve {
    /// Reserves `permits` at `now`, a time since any moment that stays the same: how long to wait for them. If that is
    /// longer than `patience`, nothing is reserved, and the error is the wait.
    ///
    /// # Errors
    ///
    /// How long it would have to wait.
    fn reserve(
        &mut self,
        now: Duration,
        permits: u32,
        patience: Option<Duration>,
    ) -> Result<Duration, Duration>;
}

/// Waits for what a [smooth method](super) says. Shared by reference or in an `Arc`.
///
/// A reservation is not given back when a caller leaves, because the next caller has already been told its time.
#[derive(Debug)]
pub struct Gate<R> {
    method: Mutex<R>,
    clock: Clock,
}

impl<R: Reserve> Gate<R> {
    /// Waits for `method`, by the clock of the machine.
    pub fn new(method: R) -> Self {
        Self::by_clock(method, Clock::machine())
    }

    /// Waits by the clock of tests.
    pub fn by_clock(method: R, clock: impl Into<Clock>) -> Self {
        Self { method: Mutex::new(method), clock: clock.into() }
    }

    /// Waits for `permits`, and says how long it was.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub async fn acquire(&self, permits: u32) -> Duration {
        let wait = self.reserve(permits, None).unwrap_or_else(|wait| wait);
        self.wait(wait).await
    }

    /// Waits for `permits` at most `patience`, and says how long it was.
    ///
    /// # Errors
    ///
    /// At once, if it would take longer.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub async fn acquire_within(
        &self,
        permits: u32,
        patience: Duration,
    ) -> Result<Duration, Refused> {
        match self.reserve(permits, Some(patience)) {
            Ok(wait) => Ok(self.wait(wait).await),
            Err(wait) => Err(Refused::new("its turn comes later than it waits for", Some(wait))),
        }
    }

    /// Changes the method, such as its rate.
    pub fn change<T>(&self, change: impl FnOnce(&mut R, Duration) -> T) -> T {
        let mut method = self.method.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut method, Duration::from_micros(self.clock.now()))
    }

    fn reserve(&self, permits: u32, patience: Option<Duration>) -> Result<Duration, Duration> {
        self.change(|method, now| method.reserve(now, permits, patience))
    }

    async fn wait(&self, wait: Duration) -> Duration {
        if !wait.is_zero() {
            Sleep::new(&self.clock, wait, tokio::time::sleep).await;
        }
        wait
    }
}
