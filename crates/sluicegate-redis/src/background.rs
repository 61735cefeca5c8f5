//! What is asked, and what is under way without anybody waiting for it: counted, and bounded.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Background {
    /// Of those that ask, and of those that settle.
    most: usize,
    asking: AtomicUsize,
    settling: AtomicUsize,
    /// Those that nobody waits for.
    under_way: AtomicUsize,
    done: Notify,
}

/// Leave to be under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    background: Arc<Background>,
    of: Of,
    is_in_background: bool,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Asking,
    Settling,
}

impl Background {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            asking: AtomicUsize::new(0),
            settling: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            done: Notify::new(),
        }
    }

    /// To ask, and to wait for the answer in the background should it come too late: whoever has no place then
    /// could not give back what was charged, so nothing is asked without one. None, if too much is asked already.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<Place> {
        self.enter(Of::Asking)
    }

    /// To settle. None, if too much is settled already.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        self.enter(Of::Settling).map(Place::in_background)
    }

    fn enter(self: &Arc<Self>, of: Of) -> Option<Place> {
        let more = |under_way| (under_way < self.most).then_some(under_way + 1);
        let entered = self.count(of).fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        let place = |_| Place { background: Arc::clone(self), of, is_in_background: false };
        entered.ok().map(place)
    }

    const fn count(&self, of: Of) -> &AtomicUsize {
        match of {
            Of::Asking => &self.asking,
            Of::Settling => &self.settling,
        }
    }

    /// Until nothing is under way that nobody waits for.
    pub(crate) async fn idle(&self) {
        loop {
            let mut done = pin!(self.done.notified());
            // From here on no end is missed.
            done.as_mut().enable();
            if self.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }
}

impl Place {
    /// From here on, nobody waits for it.
    pub(crate) fn in_background(mut self) -> Self {
        if !std::mem::replace(&mut self.is_in_background, true) {
            self.background.under_way.fetch_add(1, Ordering::AcqRel);
        }
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.background.count(self.of).fetch_sub(1, Ordering::AcqRel);
        let background = &self.background;
        if self.is_in_background && background.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            background.done.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn no_more_is_under_way_than_there_are_places() {
        let background = Arc::new(Background::new(2));
        let (first, _second) = (background.place(), background.place());
        assert!(first.is_some());
        assert!(background.place().is_none());
        drop(first);
        assert!(background.place().is_some());
    }

    #[test]
    fn those_that_ask_take_no_place_from_those_that_settle() {
        let background = Arc::new(Background::new(1));
        let asks = background.reserve().expect("the first");
        assert!(background.reserve().is_none());
        let settles = background.place();
        assert!(settles.is_some() && background.place().is_none());
        drop(asks);
        assert!(background.reserve().is_some());
    }

    #[test]
    fn what_somebody_waits_for_is_not_waited_for_here() {
        let background = Arc::new(Background::new(1));
        let asks = background.reserve().expect("the first");
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
        let late = asks.in_background();
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Pending);
        drop(late);
        assert_eq!(pin!(background.idle()).poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn it_is_idle_when_the_last_has_ended() {
        let background = Arc::new(Background::new(2));
        let (first, second) = (background.place(), background.place());
        let mut idle = pin!(background.idle());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(first);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Pending);
        drop(second);
        assert_eq!(idle.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
