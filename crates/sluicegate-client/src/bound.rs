//! One bound for all waits of a call, whatever layers it passes and in whatever order.
//!
//! Each layer that limits how long a request waits says so while it passes the request on. The layers around it and
//! those further in then know the earliest end, and none of them sleeps past it.
//!
//! The bound is noted for the thread and not in the request, because reqwest hides the extensions of its requests. It
//! is noted as the time that is left, so that layers may go by different clocks. A buffer between two layers calls the inner one in
//! another task, where nothing is noted; the documentation of [`Outgoing`](crate::Outgoing) says so.

use std::cell::Cell;
use std::time::Duration;

use sluicegate::clock::Clock;

use crate::outgoing::OutgoingRequest;

#[derive(Clone, Copy)]
enum Noted {
    /// The thread is in no call.
    Outside,
    /// What the layers of the call have said so far.
    Call(Option<Duration>),
}

thread_local! {
    static LEFT: Cell<Noted> = const { Cell::new(Noted::Outside) };
}

/// The time that the waits of the present call have left, if one of its layers has said so.
pub(crate) fn left() -> Option<Duration> {
    match LEFT.get() {
        Noted::Outside => None,
        Noted::Call(left) => left,
    }
}

/// Runs `inner`, which is a part of a call whose waits end in `own`. Returns in what time they end by all layers.
pub(crate) fn during<T>(own: Option<Duration>, inner: impl FnOnce() -> T) -> (T, Option<Duration>) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            LEFT.set(Noted::Outside);
        }
    }
    // The outermost layer forgets what was noted: the next call on this thread is another one.
    let _leave = matches!(LEFT.get(), Noted::Outside).then(|| Leave);
    LEFT.set(Noted::Call(earlier(left(), own)));
    let result = inner();
    (result, left())
}

/// The shorter one of two times, of which either may be unlimited.
pub(crate) fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// When the time is over that a request states, so that what the request waits in this program is taken off it.
#[derive(Debug)]
pub(crate) struct Stated {
    clock: Clock,
    end: Option<u64>,
}

impl Stated {
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
