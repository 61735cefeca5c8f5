use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Cache};
use sluicegate::clock::Clock;
use sluicegate::limit;
use sluicegate::store::Store;
use sluicegate::{Limiter, Memory};

use super::decide::Patience;
use crate::error::ConfigError;

/// Callers that may wait by default.
const MOST_WAITING: usize = 10_000;

/// Limits by which callers wait for their turn. Clones are the same pacer.
pub struct Pacer<S = Memory>(Arc<Shared<S>>);

pub(super) struct Shared<S> {
    /// What new turns ask. Limits can be exchanged while others wait.
    limiter: ArcSwap<Limiter<S>>,
    store: S,
    pub(super) patience: Patience,
    pub(super) look_again: Duration,
    most_waiting: usize,
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
        Self(Arc::new(Shared {
            limiter: ArcSwap::from_pointee(Limiter::new(limits).store(store.clone())),
            store,
            patience: Patience::UntilAdmitted,
            look_again: Duration::from_secs(1),
            most_waiting: MOST_WAITING,
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Sets how long callers wait; until they are admitted by default.
    #[must_use]
    pub fn patience(self, patience: Patience) -> Self {
        self.with(|shared| shared.patience = patience)
    }

    /// Sets how often a caller that waits for longer looks at the limit again, and how far ahead a place may be booked;
    /// a second by default.
    ///
    /// # Errors
    ///
    /// When that is less than a millisecond, or more than a minute.
    pub fn look_again(self, each: Duration) -> Result<Self, ConfigError> {
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&each) {
            let text = format!("a caller looks again after 1 ms to 60 s; {each:?} was given");
            return Err(ConfigError::new(text));
        }
        Ok(self.with(|shared| shared.look_again = each))
    }

    /// Sets how many callers may wait at a time, 10,000 by default. Further ones are refused if they have to wait.
    #[must_use]
    pub fn most_waiting(self, most: usize) -> Self {
        self.with(|shared| shared.most_waiting = most)
    }

    fn with(self, change: impl FnOnce(&mut Shared<S>)) -> Self {
        let Shared { ref limiter, ref store, patience, look_again, most_waiting, .. } = *self.0;
        let mut shared = Shared {
            limiter: ArcSwap::new(limiter.load_full()),
            store: store.clone(),
            patience,
            look_again,
            most_waiting,
            waiting: AtomicUsize::new(0),
        };
        change(&mut shared);
        Self(Arc::new(shared))
    }

    /// Exchanges the limits, for callers that wait too, from their next look on. What was spent is kept if the limits
    /// are [named](sluicegate::Limit::named) as before, and [carried](sluicegate::Limit::carried) over.
    ///
    /// # Panics
    ///
    /// When the store cannot keep one of the limits.
    #[track_caller]
    pub fn set_limits(&self, limits: impl Into<limit::Limits>) {
        self.0.limiter.store(Arc::new(Limiter::new(limits).store(self.0.store.clone())));
    }

    /// How many callers wait at the moment.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn shared(&self) -> &Shared<S> {
        &self.0
    }

    pub(super) fn limiter(&self) -> arc_swap::Guard<Arc<Limiter<S>>> {
        self.0.limiter.load()
    }

    /// Counts a caller that has to wait, if there is room.
    pub(super) fn enter(&self) -> bool {
        let more = |waiting| (waiting < self.0.most_waiting).then_some(waiting + 1);
        self.0.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl<S: Store> Shared<S> {
    pub(super) fn clock(&self) -> Clock {
        self.store.clock()
    }

    /// Microseconds by the store's clock.
    pub(super) fn now(&self) -> u64 {
        self.clock().now()
    }
}

impl<S> Pacer<S> {
    pub(super) fn leave(&self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The limits of a pacer, for a service that looks at them with every request: it keeps them, and looks whether they were
/// exchanged, which takes one read where a load takes two exchanges.
pub(super) type Limits<S> = Cache<LimitsOf<S>, Arc<Limiter<S>>>;

impl<S> Pacer<S> {
    pub(super) fn limits(&self) -> Limits<S> {
        Cache::new(LimitsOf(self.clone()))
    }
}

#[derive(Debug, Clone)]
pub(super) struct LimitsOf<S>(Pacer<S>);

impl<S> Deref for LimitsOf<S> {
    type Target = ArcSwap<Limiter<S>>;

    fn deref(&self) -> &ArcSwap<Limiter<S>> {
        &self.0.0.limiter
    }
}

impl<S> Clone for Pacer<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for Pacer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").field("patience", &self.0.patience).finish_non_exhaustive()
    }
}
