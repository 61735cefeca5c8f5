use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::{Clock, ManualClock};

/// A runtime's timer. Adapters provide theirs, because core knows no runtime.
pub trait Timer {
    /// Resolves when the time is over.
    type Sleep: Future<Output = ()>;

    /// Waits for `time`, from now.
    fn sleep(time: Duration) -> Self::Sleep;
}

/// A wait by a store's clock: on the future `T` of the runtime's timer, or until a test has advanced a manual clock.
pub struct Sleep<T>(Until<T>);

enum Until<T> {
    Timer(Pin<Box<T>>),
    Manual { clock: ManualClock, when: u64 },
}

impl<T> Sleep<T> {
    /// Waits for `time` by `clock`. `timer` starts the timer where that is the machine's clock.
    pub fn new(clock: &Clock, time: Duration, timer: impl FnOnce(Duration) -> T) -> Self {
        Self(match clock.as_manual() {
            None => Until::Timer(Box::pin(timer(time))),
            Some(clock) => {
                let when = clock.now().saturating_add(time.as_micros() as u64);
                Until::Manual { clock: clock.clone(), when }
            }
        })
    }
}

impl<T: Future<Output = ()>> Future for Sleep<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Until::Timer(timer) => timer.as_mut().poll(cx),
            Until::Manual { clock, when } => clock.poll_reached(*when, cx),
        }
    }
}

impl<T> fmt::Debug for Sleep<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}
