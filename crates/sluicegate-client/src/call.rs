//! What the layers of one call tell each other: how long it may wait, where its request is, and who sends it again.
//!
//! All this is noted for the thread and not in the request, because reqwest hides the extensions of its requests. A buffer
//! between two layers calls the inner one in another task, where nothing is noted; the documentation of
//! [`Outgoing`](crate::Outgoing) says so.
//!
//! - **The bound of all waits.** Each layer that limits how long a request waits says so while it passes the request on. The
//!   layers around it and those further in then know the earliest end, and none of them sleeps past it. It is noted as the
//!   time that is left, so that layers may go by different clocks.
//! - **The stage.** A layer learns whether a request that it has passed on has left the program, or a layer further in holds
//!   it back.
//! - **The mark of retries.** A request that a retry layer has taken charge of is not multiplied by a retry layer further in.
//!   The mark is in the extensions of the request where those are shown, because there it survives buffers and tasks.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;

use crate::outgoing::OutgoingRequest;

#[derive(Clone, Copy)]
enum CallState {
    /// The thread is in no call.
    Outside,
    /// What the layers of the call have said so far.
    Call(Option<Duration>),
}

thread_local! {
    static LEFT: Cell<CallState> = const { Cell::new(CallState::Outside) };
}

/// The time that the waits of the present call have left, if one of its layers has said so.
pub(crate) fn left() -> Option<Duration> {
    match LEFT.get() {
        CallState::Outside => None,
        CallState::Call(left) => left,
    }
}

/// Runs `inner`, which is a part of a call whose waits end in `own`. Returns in what time they end by all layers.
pub(crate) fn during<T>(own: Option<Duration>, inner: impl FnOnce() -> T) -> (T, Option<Duration>) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            LEFT.set(CallState::Outside);
        }
    }
    // The outermost layer forgets what was noted: the next call on this thread is another one.
    let _leave = matches!(LEFT.get(), CallState::Outside).then(|| Leave);
    LEFT.set(CallState::Call(earlier(left(), own)));
    let result = inner();
    (result, left())
}

/// The shorter one of two times, of which either may be unlimited.
pub(crate) fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// When the time is over that a request states, so that what the request waits in this program is taken off it.
#[derive(Debug)]
pub(crate) struct StatedTimeout {
    clock: Clock,
    end: Option<u64>,
}

impl StatedTimeout {
    /// What `request` states, by `clock`.
    pub(crate) fn by(clock: &Clock, request: &impl OutgoingRequest) -> Self {
        let end = request.timeout().map(|time| end(clock, time));
        Self { clock: clock.clone(), end }
    }

    /// The time until `end`, by its clock.
    pub(crate) fn until(&self, end: u64) -> Duration {
        until(&self.clock, end)
    }

    /// Makes `request` state what is left.
    pub(crate) fn shorten(&self, request: &mut impl OutgoingRequest) {
        if let Some(end) = self.end {
            request.shorten_timeout(until(&self.clock, end));
        }
    }
}

/// The instant `time` from now, in microseconds of the clock.
pub(crate) fn end(clock: &Clock, time: Duration) -> u64 {
    clock.now().saturating_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// The time until `end`.
pub(crate) fn until(clock: &Clock, end: u64) -> Duration {
    Duration::from_micros(end.saturating_sub(clock.now()))
}

/// Where a request is, as far as the layers further in say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nobody has said anything: nobody has held it back.
    Silent,
    /// It waits in this program.
    Held,
    /// It leaves, unless a layer further in holds it back next.
    Left,
}

thread_local! {
    static STAGE: Cell<Stage> = const { Cell::new(Stage::Silent) };
}

/// The request that is being worked on waits.
pub(crate) fn hold() {
    STAGE.set(Stage::Held);
}

/// The request that is being worked on leaves the layer.
pub(crate) fn leave() {
    STAGE.set(Stage::Left);
}

/// Runs `inner`, and says what has become of its request meanwhile.
pub(crate) fn watch<T>(inner: impl FnOnce() -> T) -> (T, Stage) {
    struct Restore(Stage);
    impl Drop for Restore {
        fn drop(&mut self) {
            // What was said further in holds for a layer further out, too.
            if STAGE.get() == Stage::Silent {
                STAGE.set(self.0);
            }
        }
    }
    let _restore = Restore(STAGE.replace(Stage::Silent));
    let result = inner();
    (result, STAGE.get())
}

/// A retry layer further out repeats the request if need be. In the extensions of the request.
#[derive(Clone)]
pub(crate) struct Retried {
    /// The request may be repeated.
    pub(crate) may_repeat: bool,
}

thread_local! {
    static IN_RETRY: Cell<bool> = const { Cell::new(false) };
}

/// Marks the request. True if it was marked already.
pub(crate) fn mark(request: &mut impl OutgoingRequest, mark: Retried) -> bool {
    let Some(extensions) = request.extensions_mut() else { return IN_RETRY.get() };
    if extensions.get::<Retried>().is_some() {
        return true;
    }
    extensions.insert(mark);
    false
}

/// Runs `inner` inside of the retry layer.
pub(crate) fn inside<T>(inner: impl FnOnce() -> T) -> T {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_RETRY.set(self.0);
        }
    }
    let _leave = Leave(IN_RETRY.replace(true));
    inner()
}

/// What `future` yields within `time`.
pub(crate) async fn within<F: Future>(
    clock: &Clock,
    time: Duration,
    future: F,
) -> Option<F::Output> {
    let mut sleep = Sleep::new(clock, time, tokio::time::sleep);
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    })
    .await
}
