//! Stores of these tests, and their runtime.

use std::sync::LazyLock;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::ManualClock;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_swap::{Engine, Swap, SwapBuilder};
use sluicegate_tests::{answer, key};
use tokio::runtime::Runtime;

/// The runtime of all stores of this process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("threads")
    });
    &RUNTIME
}

/// A store that uses `clock`, also for its deadlines. Calls under way must not miss them when the clock is turned.
pub(crate) fn by_hand<E: Engine>(engine: E, clock: &ManualClock) -> SwapBuilder<E> {
    let ages = Duration::from_secs(10 * 365 * 24 * 60 * 60);
    let store = Swap::builder(engine).clock(clock).deadline(ages).background(4_096, ages);
    // Held places are renewed in the background, also by that clock.
    store.concurrency_lease(ages)
}

pub(crate) fn open<E: Engine>(builder: SwapBuilder<E>) -> Swap<E> {
    let _entered = runtime().enter();
    builder.build()
}

/// Waits until everything has been settled.
pub(crate) fn settled<E: Engine>(store: &Swap<E>) {
    runtime().block_on(store.flush());
}

/// How much is left of `limit` on the key `name`.
pub(crate) fn left<E: Engine>(store: &Swap<E>, limit: Limit, name: &str) -> u64 {
    let charge = Charge::of(limit, key(name), 1);
    let peeked = answer(store.peek(&charge)).expect("the store answers");
    peeked.decision(&charge).remaining().expect("one limit")
}
