use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use sluicegate::adapter::ConfigError;
use sluicegate::clock::Clock;
use sluicegate::limit;
use sluicegate::store::Store;
use sluicegate::{Limiter, Memory};

use super::decide::Patience;

/// Callers that may wait by default.
const MOST_WAITING: usize = 10_000;

/// Limits by which callers wait for their turn. Clones are the same pacer.
pub struct Pacer<S = Memory> {
    shared: Arc<Shared<S>>,
    pub(super) patience: Patience,
    pub(super) look_again: Duration,
    most_waiting: usize,
}

struct Shared<S> {
    /// What new turns ask. Limits can be exchanged while others wait.
    limiter: ArcSwap<Limiter<S>>,
    store: S,
    waiting: AtomicUsize,
}

impl Pacer {
    /// Paces every key by `limits`, counted in the memory of this process. Callers wait until they are admitted.
    pub fn new(limits: impl Into<limit::Limits>) -> Self {
        Self::counted_in(Memory::new(), limits)
    }
}

impl<S: Store + Clone> Pacer<S> {
    /// Paces every key by `limits`, counted in `store`.
    ///
    /// # Panics
    ///
    /// When the store cannot keep one of the limits.
    #[track_caller]
    pub fn counted_in(store: S, limits: impl Into<limit::Limits>) -> Self {
        let limiter = ArcSwap::from_pointee(Limiter::new(limits).store(store.clone()));
        Self {
            shared: Arc::new(Shared { limiter, store, waiting: AtomicUsize::new(0) }),
            patience: Patience::UntilAdmitted,
            look_again: Duration::from_secs(1),
            most_waiting: MOST_WAITING,
        }
    }

    /// Sets how long callers wait; until they are admitted by default.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how often a caller that waits for longer looks at the limit again, and how far ahead a place may be booked;
    /// a second by default.
    ///
    /// # Errors
    ///
    /// When that is less than a millisecond, or more than a minute.
    pub fn look_again(mut self, each: Duration) -> Result<Self, ConfigError> {
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&each) {
            let text = format!("a caller looks again after 1 ms to 60 s; {each:?} was given");
            return Err(ConfigError::new(text));
        }
        self.look_again = each;
        Ok(self)
    }

    /// Sets how many callers may wait at a time, 10,000 by default. Further ones are refused if they have to wait.
    #[must_use]
    pub fn most_waiting(mut self, most: usize) -> Self {
        self.most_waiting = most;
        self
    }

    /// Exchanges the limits, for callers that wait too, from their next look on. What was spent is kept if the limits
    /// are [named](sluicegate::Limit::named) as before, and [carried](sluicegate::Limit::carried) over.
    ///
    /// # Panics
    ///
    /// When the store cannot keep one of the limits.
    #[track_caller]
    pub fn set_limits(&self, limits: impl Into<limit::Limits>) {
        let limiter = Limiter::new(limits).store(self.shared.store.clone());
        self.shared.limiter.store(Arc::new(limiter));
    }

    /// How many callers wait at the moment.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn limiter(&self) -> arc_swap::Guard<Arc<Limiter<S>>> {
        self.shared.limiter.load()
    }

    pub(super) fn clock(&self) -> Clock {
        self.shared.store.clock()
    }

    /// Counts a caller that has to wait, if there is room.
    pub(super) fn enter(&self) -> bool {
        let more = |waiting| (waiting < self.most_waiting).then_some(waiting + 1);
        self.shared.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl<S> Pacer<S> {
    pub(super) fn leave(&self) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S> Clone for Pacer<S> {
    fn clone(&self) -> Self {
        let Self { ref shared, patience, look_again, most_waiting } = *self;
        Self { shared: shared.clone(), patience, look_again, most_waiting }
    }
}

impl<S> fmt::Debug for Pacer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").field("patience", &self.patience).finish_non_exhaustive()
    }
}
