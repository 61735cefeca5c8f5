//! What the two halves of a client share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::transport::TransportError;
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::fair::Demand;
use crate::limit::{LeasedLimit, Wants, WeakLimit};

/// One resource that a client leases.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) resource: Box<str>,
    pub(super) on_loss: OnLoss,
    pub(super) safe: Amount,
    demand: Demand,
    wants: Mutex<Wants>,
    /// The limit that follows the lease, if there is one.
    limit: Mutex<WeakLimit>,
    /// Something was asked of the limit while there was nothing to use.
    pub(super) is_needed: AtomicBool,
    /// The bottom half writes it, and the top half reads it.
    pub(super) state: watch::Sender<LeaseState>,
}

impl Entry {
    pub(super) fn new(
        resource: &str,
        demand: Demand,
        wants: Wants,
        on_loss: OnLoss,
        safe: Amount,
    ) -> Self {
        Self {
            resource: resource.into(),
            on_loss,
            safe,
            demand,
            wants: Mutex::new(wants),
            limit: Mutex::default(),
            is_needed: AtomicBool::new(false),
            state: watch::Sender::new(LeaseState::before_the_first_grant(on_loss, safe)),
        }
    }

    pub(super) fn demand(&self) -> Demand {
        let mut demand = self.demand;
        match self.limit() {
            Some(limit) => (demand.want.wants, demand.whole) = (limit.wants(), limit.is_gauge()),
            None => demand.want.wants = self.wants().least(),
        }
        demand
    }

    pub(super) fn wants(&self) -> Wants {
        *lock(&self.wants)
    }

    pub(super) fn set_wants(&self, wants: Wants) {
        *lock(&self.wants) = wants;
        if let Some(limit) = self.limit() {
            limit.set_wants(wants);
        }
    }

    /// The limit that follows the lease.
    pub(super) fn limit(&self) -> Option<LeasedLimit> {
        lock(&self.limit).upgrade()
    }

    /// Makes the limit that follows the lease, unless there is one.
    pub(super) fn make_limit<E>(
        &self,
        make: impl FnOnce() -> Result<LeasedLimit, E>,
    ) -> Option<Result<LeasedLimit, E>> {
        let mut weak = lock(&self.limit);
        if weak.upgrade().is_some() {
            return None;
        }
        Some(make().inspect(|limit| *weak = limit.downgrade()))
    }

    /// Whether something was asked in vain since this was asked last.
    pub(super) fn take_need(&self) -> bool {
        self.is_needed.swap(false, Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client knows of its lease of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseState {
    /// What the server has granted last.
    pub granted: Amount,
    /// When the grant ends; `None` before the first one.
    pub expires: Option<Instant>,
    /// What [`OnLoss::Safe`] uses without a lease.
    pub safe: Amount,
    /// What is used without a lease.
    pub on_loss: OnLoss,
}

/// Why a client may use what it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A lease.
    Lease,
    /// The lease has ended, and the client goes on as before: [`OnLoss::Keep`].
    Kept,
    /// There is no lease, and the client uses its safe capacity: [`OnLoss::Safe`].
    Safe,
    /// There is no lease, and the client uses nothing.
    Nothing,
}

impl LeaseState {
    pub(super) fn before_the_first_grant(on_loss: OnLoss, safe: Amount) -> Self {
        Self { granted: Amount::ZERO, expires: None, safe, on_loss }
    }

    /// What may be used at this moment.
    pub fn capacity_at(&self, now: Instant) -> Amount {
        match self.basis_at(now) {
            Basis::Lease | Basis::Kept => self.granted,
            Basis::Safe => self.safe,
            Basis::Nothing => Amount::ZERO,
        }
    }

    /// Why that may be used.
    pub fn basis_at(&self, now: Instant) -> Basis {
        match self.on_loss {
            _ if self.expires.is_some_and(|expires| now < expires) => Basis::Lease,
            OnLoss::Keep if self.expires.is_some() => Basis::Kept,
            OnLoss::Safe => Basis::Safe,
            OnLoss::Stop | OnLoss::Keep => Basis::Nothing,
        }
    }
}

/// All resources of a client.
#[derive(Debug)]
pub(super) struct Shared {
    wanted: Mutex<WantedResources>,
    /// Wakes the bottom half.
    pub(super) changed: Notify,
    /// Whether the bottom half has ended.
    pub(super) ended: watch::Sender<bool>,
    problem: Mutex<Option<Arc<TransportError>>>,
}

/// What the top half wants. The bottom half compares it with what is there.
#[derive(Debug, Default)]
pub(super) struct WantedResources {
    pub(super) entries: Vec<Arc<Entry>>,
    /// The bottom half gives everything back and ends.
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            wanted: Mutex::default(),
            changed: Notify::new(),
            ended: watch::Sender::new(false),
            problem: Mutex::default(),
        }
    }

    pub(super) fn wanted(&self) -> MutexGuard<'_, WantedResources> {
        lock(&self.wanted)
    }

    /// Why the last request was not answered.
    pub(super) fn problem(&self) -> Option<Arc<TransportError>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_problem(&self, problem: Option<TransportError>) {
        let problem = problem.map(Arc::new);
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    pub(super) fn close(&self) {
        self.wanted().is_closed = true;
        self.changed.notify_one();
    }
}
