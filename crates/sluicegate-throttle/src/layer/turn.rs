//! Turns of a thread: a handler that keeps its thread busy keeps it from reading requests, so what waits is where no
//! throttle sees it, in the order in which it came.
//!
//! A thread that has been busy with handlers starts nothing before it has looked at everything else that is ready. The
//! requests that it finds go into the queue, and the most critical of them is started next. A thread whose handlers wait
//! is never busy for so long, and starts its requests at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::task::yield_now;

/// A turn is due when handlers have been polled for this long in a thread, in microseconds. A turn takes about two.
pub(super) const LONGEST: u64 = 1_000;

/// A thread that polls no handler for this long has looked at everything else, in microseconds.
const REST: u64 = 1_000;

thread_local! {
    /// When the last poll of a handler ended, and how long handlers have been polled since the last turn.
    static BUSY: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// A handler was polled in this thread.
#[inline]
pub(super) fn polled(since: u64, until: u64) {
    let add = |busy: &Cell<(u64, u64)>| {
        let (last, time) = busy.get();
        // After a rest, the thread has read everything that had come.
        // A thread-local and not a part of the throttle: the thread is busy with the handlers of all throttles
        // together.
        let time = if since.wrapping_sub(last) < REST { time } else { 0 };
        busy.set((until, time.saturating_add(until.saturating_sub(since))));
    };
    let _ = BUSY.try_with(add);
}

/// Whether this thread belongs to a runtime: nothing else has turns.
pub(super) fn is_possible() -> bool {
    Handle::try_current().is_ok()
}

/// Whether this thread has to look at everything else before it starts another request.
#[inline]
pub(super) fn is_due(now: u64) -> bool {
    let (last, time) = BUSY.try_with(Cell::get).unwrap_or_default();
    time >= LONGEST && now.wrapping_sub(last) < REST && is_possible()
}

/// This thread has looked at everything else.
pub(super) fn is_over() {
    let _ = BUSY.try_with(|busy| busy.set((0, 0)));
}

/// Waits until all other tasks that are ready have been polled, and all sockets that are ready have been read.
pub(super) async fn pass() {
    let mut is_behind = false;
    // At the end of the runtime's queue, an idle thread can take this task over.
    poll_fn(|cx| match std::mem::replace(&mut is_behind, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
    // Goes on after the runtime has asked the system for events.
    yield_now().await;
}
