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
    /// How long it would have to wait; [`Duration::MAX`] if they are never there.
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
    /// Held by the caller of [`acquire`](Self::acquire) that reserves next, also while its method does not let it. Others
    /// come behind it, in the order of their arrival.
    front: tokio::sync::Mutex<()>,
}

impl<R: Reserve> Gate<R> {
    /// Waits for `method`, by the clock of the machine.
    pub fn new(method: R) -> Self {
        Self::by_clock(method, Clock::machine())
    }

    /// Waits by the clock of tests.
    pub fn by_clock(method: R, clock: impl Into<Clock>) -> Self {
        Self {
            method: Mutex::new(method),
            clock: clock.into(),
            front: tokio::sync::Mutex::default(),
        }
    }

    /// Waits for `permits`, and says how long it was. For more than there can ever be, such as more than a period of a
    /// [`Refilled`](super::Refilled) has, it waits for ever.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub async fn acquire(&self, permits: u32) -> Duration {
        let begun = self.clock.now();
        let front = self.front.lock().await;
        let wait = loop {
            match self.reserve(permits, None) {
                Ok(wait) => break wait,
                Err(Duration::MAX) => {
                    drop(front);
                    return std::future::pending().await;
                }
                // Nothing is reserved, so it asks again then.
                Err(wait) => _ = self.wait(wait).await,
            }
        };
        let waited = Duration::from_micros(self.clock.now().saturating_sub(begun));
        drop(front);
        waited + self.wait(wait).await
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sluicegate::ManualClock;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;
    use crate::smooth::{Refilled, Spread};

    const SECOND: Duration = Duration::from_secs(1);

    fn acquire<R>(gate: &Arc<Gate<R>>, permits: u32) -> JoinHandle<Duration>
    where
        R: Reserve + Send + 'static,
    {
        let gate = gate.clone();
        tokio::spawn(async move { gate.acquire(permits).await })
    }

    /// What `call` waits, while the clock turns.
    async fn waited(clock: &ManualClock, call: JoinHandle<Duration>) -> Duration {
        while !call.is_finished() {
            yield_now().await;
            clock.advance(Duration::from_millis(1));
        }
        call.await.expect("it ends")
    }

    #[tokio::test]
    async fn what_cannot_be_reserved_yet_does_not_pass() {
        let clock = ManualClock::at(Duration::ZERO);
        let spread = Spread::new(100, SECOND, 20, SECOND / 20).expect("it makes sense");
        let gate = Arc::new(Gate::by_clock(spread, &clock));
        let calls = [(); 1_000].map(|()| acquire(&gate, 1));
        // All come before the clock turns.
        for _ in 0..100 {
            yield_now().await;
        }
        let mut last = Duration::ZERO;
        let mut windows = [0; 20];
        for call in calls {
            let waited = waited(&clock, call).await;
            assert!(waited >= last, "in the order of arrival");
            windows[waited.as_secs() as usize] += 1;
            last = waited;
        }
        assert!(windows.iter().all(|passed| *passed <= 100), "{windows:?}");
        assert!(last < 10 * SECOND, "{last:?}");
    }

    #[tokio::test]
    async fn permits_that_are_never_there_hold_up_nobody() {
        async fn hold_up_nobody(method: impl Reserve + Send + 'static) {
            let clock = ManualClock::at(Duration::ZERO);
            let gate = Arc::new(Gate::by_clock(method, &clock));
            let never = acquire(&gate, 3);
            for longest in [0, 1, 2] {
                let waited = waited(&clock, acquire(&gate, 1)).await;
                assert!(waited <= longest * SECOND, "{waited:?}");
            }
            assert!(!never.is_finished());
        }
        hold_up_nobody(Refilled::new(2, SECOND).expect("a period")).await;
        hold_up_nobody(Spread::new(2, SECOND, 2, SECOND).expect("it makes sense")).await;
    }
}
