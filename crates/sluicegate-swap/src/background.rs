//! Bounds on calls and settlements under way, and waiting for those that no caller waits for.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Background {
    /// The bound on calls, and on settlements.
    most: usize,
    calls: AtomicUsize,
    settlements: AtomicUsize,
    unattended: AtomicUsize,
    done: Notify,
}

/// Counts a call or a settlement until its last clone is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    background: Arc<Background>,
    is_settlement: bool,
    is_unattended: AtomicBool,
}

impl Background {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let count = AtomicUsize::default;
        let (calls, settlements, unattended) = (count(), count(), count());
        Arc::new(Self { most, calls, settlements, unattended, done: Notify::new() })
    }

    /// `None` if too many calls are under way: one more could not be given back if its answer came too late.
    pub(crate) fn call(self: &Arc<Self>) -> Option<Arc<Guard>> {
        self.enter(false)
    }

    /// `None` if too many settlements are under way.
    pub(crate) fn settlement(self: &Arc<Self>) -> Option<Arc<Guard>> {
        let guard = self.enter(true)?;
        guard.leave();
        Some(guard)
    }

    fn enter(self: &Arc<Self>, is_settlement: bool) -> Option<Arc<Guard>> {
        let more = |under_way| (under_way < self.most).then_some(under_way + 1);
        let count = self.count(is_settlement);
        count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        let is_unattended = AtomicBool::new(false);
        Some(Arc::new(Guard { background: Arc::clone(self), is_settlement, is_unattended }))
    }

    const fn count(&self, is_settlement: bool) -> &AtomicUsize {
        if is_settlement { &self.settlements } else { &self.calls }
    }

    /// Waits until nothing is under way that no caller waits for.
    pub(crate) async fn idle(&self) {
        loop {
            let mut done = pin!(self.done.notified());
            // Registered before the count is read, so that no wake-up is missed.
            done.as_mut().enable();
            if self.unattended.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }
}

impl Guard {
    /// No caller waits from here on: [`idle`](Background::idle) does.
    pub(crate) fn leave(&self) {
        if !self.is_unattended.swap(true, Ordering::AcqRel) {
            self.background.unattended.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let background = &self.background;
        background.count(self.is_settlement).fetch_sub(1, Ordering::AcqRel);
        let is_unattended = *self.is_unattended.get_mut();
        if is_unattended && background.unattended.fetch_sub(1, Ordering::AcqRel) == 1 {
            background.done.notify_waiters();
        }
    }
}
