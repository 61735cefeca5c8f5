//! What is under way without anybody waiting for it: counted, and bounded.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Background {
    most: usize,
    under_way: AtomicUsize,
    done: Notify,
}

/// Leave to be under way in the background, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Background>);

impl Background {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, under_way: AtomicUsize::new(0), done: Notify::new() }
    }

    /// None, if too much is under way already.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        let more = |under_way| (under_way < self.most).then_some(under_way + 1);
        let entered = self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.ok().map(|_| Place(Arc::clone(self)))
    }

    /// Until nothing is under way.
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

impl Drop for Place {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.done.notify_waiters();
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
