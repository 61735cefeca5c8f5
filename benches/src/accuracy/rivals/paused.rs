use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::advance;

/// A tokio runtime whose clock only moves when it is told.
#[derive(Debug)]
pub(super) struct Paused {
    runtime: Runtime,
    now: u64,
}

impl Paused {
    pub(super) fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O asks nothing of the system");
        Self { runtime, now: 0 }
    }

    /// Makes something that reads this clock as it is made.
    pub(super) fn make<T>(&self, make: impl FnOnce() -> T) -> T {
        let _entered = self.runtime.enter();
        make()
    }

    /// The result of `future` at that many microseconds after the start.
    pub(super) fn at<F: Future>(&mut self, at: u64, future: F) -> F::Output {
        let passed = Duration::from_micros(at - self.now);
        self.now = at;
        self.runtime.block_on(async {
            advance(passed).await;
            future.await
        })
    }
}
