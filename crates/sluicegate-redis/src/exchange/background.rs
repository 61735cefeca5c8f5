//! Bounds on calls and settlements under way, and on what runs in the background.
//!
//! Too late is not charged. A time-out that drops the question also drops the answer, and with it what it
//! takes to give back. So the time-outs of the client library are off. When the deadline has passed, or the
//! request is dropped, the answer is awaited in the background, in one of a bounded number of places, and
//! what it charged is given back. That is why an error can mean that nothing is charged.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Background {
    /// The bound on calls, and on settlements.
    most: usize,
    calls: AtomicUsize,
    settlements: AtomicUsize,
    /// Calls and settlements for which no caller waits.
    in_background: AtomicUsize,
    done: Notify,
}

/// Counts a call or a settlement until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    background: Arc<Background>,
    kind: Kind,
    is_in_background: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Call,
    Settlement,
}

impl Background {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            calls: AtomicUsize::new(0),
            settlements: AtomicUsize::new(0),
            in_background: AtomicUsize::new(0),
            done: Notify::new(),
        }
    }

    /// Reserves a place for a call, and for waiting in the background if its answer comes too late. Without it, the
    /// charge could not be given back then, so no call is made. `None` if too many calls are under way.
    pub(crate) fn reserve_call(self: &Arc<Self>) -> Option<Reservation> {
        self.enter(Kind::Call)
    }

    /// Reserves a place for a settlement. `None` if too many are under way.
    pub(crate) fn reserve_settlement(self: &Arc<Self>) -> Option<Reservation> {
        self.enter(Kind::Settlement).map(Reservation::in_background)
    }

    fn enter(self: &Arc<Self>, kind: Kind) -> Option<Reservation> {
        // Calls and settlements have separate counts. A flood of calls must not keep what they charged from being
        // given back.
        let more = |under_way| (under_way < self.most).then_some(under_way + 1);
        let entered = self.count(kind).fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        let reservation =
            |_| Reservation { background: Arc::clone(self), kind, is_in_background: false };
        entered.ok().map(reservation)
    }

    const fn count(&self, kind: Kind) -> &AtomicUsize {
        match kind {
            Kind::Call => &self.calls,
            Kind::Settlement => &self.settlements,
        }
    }

    /// Waits until nothing runs in the background.
    pub(crate) async fn idle(&self) {
        loop {
            let mut done = pin!(self.done.notified());
            // Registered before the count is read, so that no wake-up is missed.
            done.as_mut().enable();
            if self.in_background.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }
}

impl Reservation {
    /// No caller waits from here on: [`idle`](Background::idle) does.
    pub(crate) fn in_background(mut self) -> Self {
        if !std::mem::replace(&mut self.is_in_background, true) {
            self.background.in_background.fetch_add(1, Ordering::AcqRel);
        }
        self
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // The place is free before the notice is sent, because a task that waited for it may begin a call at once.
        self.background.count(self.kind).fetch_sub(1, Ordering::AcqRel);
        let background = &self.background;
        if self.is_in_background && background.in_background.fetch_sub(1, Ordering::AcqRel) == 1 {
            background.done.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_number_of_settlements_is_bounded() {
        let background = Arc::new(Background::new(2));
        let (first, _second) = (background.reserve_settlement(), background.reserve_settlement());
        assert!(first.is_some());
        assert!(background.reserve_settlement().is_none());
        drop(first);
        assert!(background.reserve_settlement().is_some());
    }

    #[test]
    fn calls_leave_room_for_settlements() {
        let background = Arc::new(Background::new(1));
        let call = background.reserve_call().expect("the first");
        assert!(background.reserve_call().is_none());
        let settlement = background.reserve_settlement();
        assert!(settlement.is_some() && background.reserve_settlement().is_none());
        drop(call);
        assert!(background.reserve_call().is_some());
    }

    #[test]
    fn idle_does_not_wait_for_calls_that_a_caller_awaits() {
        let background = Arc::new(Background::new(1));
        let call = background.reserve_call().expect("the first");
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
        let late = call.in_background();
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Pending);
        drop(late);
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn idle_ends_with_the_last_settlement() {
        let background = Arc::new(Background::new(2));
        let (first, second) = (background.reserve_settlement(), background.reserve_settlement());
        let mut idle = pin!(background.idle());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(first);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(second);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
