//! Bounds on calls and settlements under way, and on what runs in the background.
//!
//! Too late is not charged. A time-out that drops the question also drops the answer, and with it what it
//! takes to give back. So when the deadline has passed, or the request is dropped, the answer is awaited in the
//! background, in one of a bounded number of places, and what it charged is given back. That is why an error can mean
//! that nothing is charged.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// What a store that decides elsewhere has under way.
#[derive(Debug)]
pub struct Background {
    /// The bound on calls, and on settlements.
    most: usize,
    calls: AtomicUsize,
    settlements: AtomicUsize,
    /// Calls and settlements that no caller waits for.
    unattended: AtomicUsize,
    /// Who waits until there are none.
    idle: Mutex<Vec<Waker>>,
}

/// Counts a call or a settlement until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    background: Arc<Background>,
    is_settlement: bool,
    is_unattended: AtomicBool,
}

impl Background {
    /// At most this many calls at a time, and as many settlements.
    pub fn new(most: usize) -> Arc<Self> {
        let count = AtomicUsize::default;
        let (calls, settlements, unattended) = (count(), count(), count());
        Arc::new(Self { most, calls, settlements, unattended, idle: Mutex::default() })
    }

    /// Reserves a place for a call, and for waiting in the background if its answer comes too late. Without it, the
    /// charge could not be given back then, so no call is made. `None` if too many calls are under way.
    pub fn call(self: &Arc<Self>) -> Option<Reservation> {
        self.enter(false)
    }

    /// Reserves a place for a settlement, which no caller waits for. `None` if too many are under way.
    pub fn settlement(self: &Arc<Self>) -> Option<Reservation> {
        self.enter(true).inspect(Reservation::leave)
    }

    fn enter(self: &Arc<Self>, is_settlement: bool) -> Option<Reservation> {
        // Calls and settlements have separate counts. A flood of calls must not keep what they charged from being
        // given back.
        let more = |under_way| (under_way < self.most).then_some(under_way + 1);
        let count = self.count(is_settlement);
        count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        let is_unattended = AtomicBool::new(false);
        Some(Reservation { background: Arc::clone(self), is_settlement, is_unattended })
    }

    const fn count(&self, is_settlement: bool) -> &AtomicUsize {
        if is_settlement { &self.settlements } else { &self.calls }
    }

    /// Ends when nothing is under way that no caller waits for.
    pub fn idle(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|cx| {
            // Under the lock, so that the last one to end either is seen here or sees this waker.
            let mut waiting = self.waiting();
            if self.unattended.load(Ordering::Acquire) == 0 {
                return Poll::Ready(());
            }
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// No caller waits from here on: [`idle`](Background::idle) does.
    pub fn leave(&self) {
        if !self.is_unattended.swap(true, Ordering::AcqRel) {
            self.background.unattended.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let background = &self.background;
        // The place is free before anybody is woken, because a task that waited for it may begin a call at once.
        background.count(self.is_settlement).fetch_sub(1, Ordering::AcqRel);
        let is_unattended = *self.is_unattended.get_mut();
        if is_unattended && background.unattended.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiting = mem::take(&mut *background.waiting());
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn the_number_of_settlements_is_bounded() {
        let background = Background::new(2);
        let (first, _second) = (background.settlement(), background.settlement());
        assert!(first.is_some());
        assert!(background.settlement().is_none());
        drop(first);
        assert!(background.settlement().is_some());
    }

    #[test]
    fn calls_leave_room_for_settlements() {
        let background = Background::new(1);
        let call = background.call().expect("the first");
        assert!(background.call().is_none());
        let settlement = background.settlement();
        assert!(settlement.is_some() && background.settlement().is_none());
        drop(call);
        assert!(background.call().is_some());
    }

    #[test]
    fn idle_does_not_wait_for_calls_that_a_caller_awaits() {
        let background = Background::new(1);
        let call = background.call().expect("the first");
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
        call.leave();
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Pending);
        drop(call);
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn idle_ends_with_the_last_settlement() {
        let background = Background::new(2);
        let (first, second) = (background.settlement(), background.settlement());
        let mut idle = pin!(background.idle());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(first);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(second);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
