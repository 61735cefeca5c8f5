mod acquire;
mod take;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Enforcer, Observer, Outcome, SetSpent};
use sluicegate_core::key::{KeyBuf, Part};
use sluicegate_core::limit::Limits;
use sluicegate_core::observe::Watch;
use sluicegate_core::store::{Blocks, OnStoreError, Store, StoreError};
use sluicegate_core::{Decision, Memory};

pub use self::acquire::{Acquire, AcquireError};
pub use self::take::Take;

/// Limits for code without HTTP: outgoing calls, jobs, messages.
///
/// ```
/// use sluicegate::{Limit, Limiter};
///
/// let limiter = Limiter::new(Limit::per_minute(2));
///
/// assert!(limiter.take("alice").now()?.is_admitted());
/// assert!(limiter.take("alice").now()?.is_admitted());
/// assert!(!limiter.take("alice").now()?.is_admitted());
/// assert!(limiter.take("bob").now()?.is_admitted());
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
///
/// Clones share one store.
#[derive(Debug, Clone)]
pub struct Limiter<S = Memory> {
    limits: Limits,
    enforcer: Arc<Enforcer<S>>,
}

impl Limiter {
    /// Limits every key by `limits`, counted in the memory of this process.
    ///
    /// # Panics
    ///
    /// If a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(limits: impl Into<Limits>) -> Self {
        let limits = limits.into();
        let mut enforcer = Enforcer::in_memory(&limits);
        enforcer.observer = Observer::without_events();
        // Callers wait for the store as long as they like, and get its errors.
        enforcer.deadline = None;
        enforcer.on_store_error = OnStoreError::Refuse;
        Self { limits, enforcer: Arc::new(enforcer) }
    }
}

impl Limiter<Memory> {
    /// Spends `cost` on `key`, if every limit admits it, and returns only whether and when: the quickest way if the
    /// status of the key is not needed. It is neither measured nor reported to a [`Watch`].
    ///
    /// ```
    /// use sluicegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_minute(1));
    /// assert!(limiter.spend("alice", 1)?.is_admitted());
    /// assert!(limiter.spend("alice", 1)?.retry_after().is_some());
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the store has no room for the key.
    #[inline(always)]
    pub fn spend(&self, key: impl Part, cost: u64) -> Result<Outcome, StoreError> {
        match self.limits.only() {
            Some(limit) => self.enforcer.store.spend_on(limit, &key, cost),
            None => self.enforcer.store.take(&self.charge_for(key, cost)).now(),
        }
    }
}

impl<S> Limiter<S> {
    /// Counts in `store`.
    ///
    /// # Panics
    ///
    /// If the store cannot keep one of the limits.
    #[must_use]
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> Limiter<T> {
        let enforcer = self.enforcer.with_store(store, &self.limits);
        Limiter { limits: self.limits, enforcer: Arc::new(enforcer) }
    }

    /// How many [`acquire`](Limiter::acquire)s wait for their turn, in this limiter and its clones.
    pub fn waiting(&self) -> usize {
        self.enforcer.gate.waiting()
    }
}

impl<S: Store + Clone> Limiter<S> {
    /// Reports refused keys to `watch`, except those of [`spend`](Limiter::spend).
    #[must_use]
    pub fn watch(mut self, watch: &Watch) -> Self {
        Arc::make_mut(&mut self.enforcer).observer.watch = Some(watch.clone());
        self
    }

    /// Lets keys be [blocked](Limiter::block) by hand. Every decision then looks for a block first: see [`Blocks`].
    ///
    /// # Panics
    ///
    /// When the store cannot keep blocks.
    #[must_use]
    #[track_caller]
    pub fn blockable(self) -> Limiter<Blocks<S>> {
        let store = Blocks::new(self.enforcer.store.clone());
        self.store(store)
    }
}

impl<S: Store + Clone> Limiter<Blocks<S>> {
    /// Refuses `key` for `duration` from now, rounded up to a microsecond, whatever it has spent: by the policy
    /// `blocked`, and without charging anything. It replaces an earlier block of the key, whether that is longer or
    /// shorter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_minute(60)).blockable();
    /// limiter.block("alice", Duration::from_secs(600)).now()?;
    /// assert!(!limiter.take("alice").now()?.is_admitted());
    /// limiter.unblock("alice").now()?;
    /// assert!(limiter.take("alice").now()?.is_admitted());
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    pub fn block(&self, key: impl Part, duration: Duration) -> SetSpent<S> {
        self.enforcer.store.block(key, duration)
    }

    /// Ends the block of `key`, if there is one.
    pub fn unblock(&self, key: impl Part) -> SetSpent<S> {
        self.enforcer.store.unblock(key)
    }
}

impl<S: Store> Limiter<S> {
    /// Spends one on `key`, if every limit admits it. It is decided when called, not when first polled.
    ///
    /// A place of [`Limit::concurrent`](crate::Limit::concurrent) that is taken this way is held until
    /// it is [given](Self::give) back; [`acquire`](Self::acquire) does that by itself.
    pub fn take(&self, key: impl Part) -> Take<S::Future> {
        self.take_n(key, 1)
    }

    /// Spends `cost` on `key`, if every limit admits it.
    pub fn take_n(&self, key: impl Part, cost: u64) -> Take<S::Future> {
        let charge = self.charge_for(key, cost);
        let Enforcer { store, observer, clock, .. } = &*self.enforcer;
        Take::told(store.take(&charge), charge, observer, clock)
    }

    /// What [`take`](Self::take) would answer, without spending.
    pub fn peek(&self, key: impl Part) -> Take<S::Future> {
        self.peek_n(key, 1)
    }

    /// What [`take_n`](Self::take_n) would answer, without spending.
    pub fn peek_n(&self, key: impl Part, cost: u64) -> Take<S::Future> {
        let charge = self.charge_for(key, cost);
        Take::untold(self.enforcer.store.peek(&charge), charge)
    }

    /// Forgets what was spent on `key`; answers as [`peek`](Self::peek) afterwards.
    pub fn reset(&self, key: impl Part) -> Take<S::Future> {
        let charge = self.charge_for(key, 1);
        Take::untold(self.enforcer.store.reset(&charge), charge)
    }

    /// Sets what `key` has spent of each limit to `amount`, at this moment. If the amount is beyond a limit, the key
    /// is refused until the excess has drained, or until the windows that it fills are over.
    ///
    /// It takes two steps: what was spent is forgotten, as by [`reset`](Self::reset), and the amount is charged. A
    /// request that comes in between is decided by what it finds, and counts in addition to the amount. An earlier
    /// charge that is settled or given back afterwards is taken for a later one. For a
    /// [`min_gap`](crate::Limit::min_gap), setting an amount other than 0 counts as one request.
    ///
    /// Places of [`Limit::concurrent`](crate::Limit::concurrent) are not affected: each is held by a request.
    ///
    /// ```
    /// use sluicegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_minute(60));
    /// limiter.set_spent("alice", 45).now()?;
    /// assert_eq!(limiter.peek("alice").now()?.remaining(), Some(15));
    /// // 90 seconds' worth beyond the limit.
    /// limiter.set_spent("alice", 150).now()?;
    /// assert!(!limiter.take("alice").now()?.is_admitted());
    /// limiter.set_spent("alice", 0).now()?;
    /// assert!(limiter.take("alice").now()?.is_admitted());
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    pub fn set_spent(&self, key: impl Part, amount: u64) -> SetSpent<S>
    where
        S: Clone,
    {
        let written = KeyBuf::of(key);
        let mut charge = Charge::new();
        for limit in self.limits.iter().filter(|limit| !limit.is_held()) {
            charge.add(*limit, written, 0).expect("limits of one list fit a charge");
        }
        SetSpent::new(self.enforcer.store.clone(), charge, amount)
    }

    /// Gives back what `decision` charged to `key`, as far as it has not been recovered already. A refused decision
    /// charged nothing.
    pub fn give(&self, key: impl Part, decision: &Decision) {
        self.settle_each(key, decision, |_, _| 0);
    }

    /// Changes what `decision` charged to `key` to `spent`, of each limit: gives back the excess, as
    /// [`give`](Self::give) does, or charges the difference, beyond the limit if necessary. A refused decision
    /// charged nothing, and places of [`Limit::concurrent`](crate::Limit::concurrent) stay held.
    ///
    /// While a key is charged beyond its limit, or requests wait for it in a queue, earlier charges may get nothing back.
    ///
    /// Settle each decision once.
    ///
    /// ```
    /// use sluicegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::fixed_window(100, std::time::Duration::from_secs(60)));
    /// // Reserves the most that it may cost, and pays what it did.
    /// let reserved = limiter.take_n("alice", 40).now()?;
    /// limiter.settle("alice", &reserved, 15);
    /// assert_eq!(limiter.peek("alice").now()?.remaining(), Some(85));
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    pub fn settle(&self, key: impl Part, decision: &Decision, spent: u64) {
        self.settle_each(key, decision, |charged, is_held| if is_held { charged } else { spent });
    }

    fn settle_each(&self, key: impl Part, decision: &Decision, spent: impl Fn(u64, bool) -> u64) {
        if !decision.is_admitted() {
            return;
        }
        for (debit, status) in self.charge_for(key, 1).debits().zip(decision.statuses()) {
            let spent = spent(status.charged, debit.limit.is_held());
            if status.receipt.is_void() || spent == status.charged {
                continue;
            }
            let mut debit = debit.clone();
            debit.cost = status.charged;
            self.enforcer.store.settle(&debit, &status.receipt, spent);
        }
    }

    /// Spends `cost` on `key`, if every limit admits it at once, and returns a [`Ticket`](crate::store::Ticket) for
    /// it, to be settled to the real cost, given back, or kept. Like [`acquire_n`](Self::acquire_n), without waiting.
    ///
    /// Dropped unsettled, the ticket keeps the charge, and gives back places of
    /// [`Limit::concurrent`](crate::Limit::concurrent).
    ///
    /// ```
    /// use sluicegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_day(1_000));
    /// let ticket = limiter.charge("alice", 400).now()?;
    /// ticket.settle_to(150);
    /// assert_eq!(limiter.peek("alice").now()?.remaining(), Some(850));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn charge(&self, key: impl Part, cost: u64) -> Acquire<S>
    where
        S: Clone,
    {
        self.acquire_n(key, cost, Duration::ZERO)
    }

    /// Waits until `key` is admitted, at most `max_wait`, in order of arrival. If it cannot be admitted in that time,
    /// or if a leaky bucket's own [`queue`](crate::Limit::queue) is full, it is refused at once.
    ///
    /// The place is booked when this is called; dropping the future gives it back. The
    /// [`Ticket`](crate::store::Ticket) that
    /// it resolves to holds a place of [`Limit::concurrent`](crate::Limit::concurrent) until it is
    /// dropped.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn acquire(&self, key: impl Part, max_wait: Duration) -> Acquire<S>
    where
        S: Clone,
    {
        self.acquire_n(key, 1, max_wait)
    }

    /// [`acquire`](Self::acquire) at a cost.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn acquire_n(&self, key: impl Part, cost: u64, max_wait: Duration) -> Acquire<S>
    where
        S: Clone,
    {
        Acquire::new(&self.enforcer, self.charge_for(key, cost).patient(max_wait))
    }

    /// [`acquire_n`](Self::acquire_n) of a key that is already written, such as one that was [read from a
    /// request](KeyBuf::from_view). Given as a part, such a key would become a part of another one.
    pub fn acquire_key(&self, key: KeyBuf, cost: u64, max_wait: Duration) -> Acquire<S>
    where
        S: Clone,
    {
        Acquire::new(&self.enforcer, self.charge_key(key, cost).patient(max_wait))
    }

    fn charge_for(&self, key: impl Part, cost: u64) -> Charge {
        self.charge_key(KeyBuf::of(key), cost)
    }

    fn charge_key(&self, key: KeyBuf, cost: u64) -> Charge {
        if let Some(limit) = self.limits.only() {
            return Charge::of(*limit, key, cost);
        }
        let mut charge = Charge::new();
        for limit in self.limits.iter() {
            // `Limits` contains at most as many as fit, and no two that are alike.
            charge.add(*limit, key, cost).expect("limits of one list fit a charge");
        }
        charge
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";
