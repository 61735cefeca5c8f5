//! The tokio runtime: tasks and timers.

use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Duration;

use sluicegate_core::adapter::Sleep;
use sluicegate_core::clock::Clock;
use tokio::runtime::Handle;

/// The runtime that calls run on, and the clock that deadlines use.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) clock: Clock,
    handle: OnceLock<Handle>,
}

impl Runtime {
    /// Uses the current runtime, or else the first one in which it is used.
    pub(crate) fn new(clock: Clock) -> Self {
        let runtime = Self { clock, handle: OnceLock::new() };
        runtime.handle();
        runtime
    }

    /// `None` until it is used in a runtime.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        if self.handle.get().is_none() {
            let _ = self.handle.set(Handle::try_current().ok()?);
        }
        self.handle.get()
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(handle) = self.handle() {
            handle.spawn(future);
        }
    }

    /// Waits by the store's clock, which a test may turn by hand.
    pub(crate) fn sleep(&self, time: Duration) -> Sleep<tokio::time::Sleep> {
        Sleep::new(&self.clock, time, |time| self.timer(time))
    }

    /// Waits by the machine's clock, whatever the store's clock is.
    pub(crate) fn timer(&self, time: Duration) -> tokio::time::Sleep {
        let _entered = self.handle().map(Handle::enter);
        tokio::time::sleep(time)
    }
}

/// The output of `future`, unless `over` ends first.
pub(crate) async fn before<F: Future>(
    over: impl Future<Output = ()>,
    future: F,
) -> Option<F::Output> {
    let (mut future, mut over) = (pin!(future), pin!(over));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => over.as_mut().poll(cx).map(|()| None),
    })
    .await
}
