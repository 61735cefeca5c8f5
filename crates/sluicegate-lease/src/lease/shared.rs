//! What the two halves of a client share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::state::LeaseState;
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::demand::Demand;

/// One resource that a client leases.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) resource: Box<str>,
    pub(super) on_loss: OnLoss,
    pub(super) safe: Amount,
    demand: Demand,
    /// In millionths.
    wants: AtomicU64,
    /// The bottom half writes it, and the top half reads it.
    pub(super) state: watch::Sender<LeaseState>,
}

impl Entry {
    pub(super) fn new(resource: &str, demand: Demand, on_loss: OnLoss, safe: Amount) -> Self {
        Self {
            resource: resource.into(),
            on_loss,
            safe,
            demand,
            wants: AtomicU64::new(demand.want.wants.millionths()),
            state: watch::Sender::new(LeaseState::before_the_first_grant(on_loss, safe)),
        }
    }

    pub(super) fn demand(&self) -> Demand {
        let mut demand = self.demand;
        demand.want.wants = Amount::from_millionths(self.wants.load(Ordering::Relaxed));
        demand
    }

    pub(super) fn set_wants(&self, wants: Amount) {
        self.wants.store(wants.millionths(), Ordering::Relaxed);
    }
}

/// All resources of a client.
#[derive(Debug)]
pub(super) struct Shared {
    wanted: Mutex<Wanted>,
    /// Wakes the bottom half.
    pub(super) changed: Notify,
    /// Whether the bottom half has ended.
    pub(super) ended: watch::Sender<bool>,
}

/// What the top half wants. The bottom half compares it with what is there.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) entries: Vec<Arc<Entry>>,
    /// The bottom half gives everything back and ends.
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self { wanted: Mutex::default(), changed: Notify::new(), ended: watch::Sender::new(false) }
    }

    pub(super) fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.wanted().is_closed = true;
        self.changed.notify_one();
    }
}
