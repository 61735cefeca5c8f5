use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::sync::{Mutex, MutexGuard};
use crate::scheduler::{Running, Shed};

/// What a queued request is told.
#[derive(Debug)]
pub(super) enum Told {
    Start(Running),
    Shed(Shed),
}

/// Tells a queued request whether it is started or refused. It is told once, whether or not it has been polled before,
/// so no wake-up is lost.
#[derive(Debug, Default)]
pub(super) struct Waiter(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    told: Option<Told>,
    waker: Option<Waker>,
}

impl Waiter {
    /// Returns the waker to call after the lock of the queue has been released.
    pub(super) fn tell(&self, told: Told) -> Option<Waker> {
        let mut waiting = self.lock();
        waiting.told = Some(told);
        waiting.waker.take()
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Told> {
        let mut waiting = self.lock();
        if let Some(told) = waiting.told.take() {
            return Poll::Ready(told);
        }
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The message that it has not read yet.
    pub(super) fn take(&self) -> Option<Told> {
        self.lock().told.take()
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.lock().waker.take()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
