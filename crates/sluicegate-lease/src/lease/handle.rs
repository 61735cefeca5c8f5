use std::error::Error;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::shared::{Entry, Shared};
use super::state::{Basis, LeaseState};
use crate::amount::Amount;

/// A part of a resource that a [`LeaseClient`](super::LeaseClient) leases: the half of the client that never waits for
/// the network.
///
/// Clones are the same lease. When the last of them is dropped, the client gives the lease back.
#[derive(Debug, Clone)]
pub struct Lease {
    held: Arc<Held>,
    seen: watch::Receiver<LeaseState>,
}

/// Gives a lease back when it is dropped.
#[derive(Debug)]
struct Held {
    entry: Arc<Entry>,
    owner: Arc<Owner>,
}

/// Ends the client when the last handle of it, or of its leases, is dropped.
#[derive(Debug)]
pub(super) struct Owner(pub(super) Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let shared = &self.owner.0;
        shared.wanted().entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        shared.changed.notify_one();
    }
}

impl Lease {
    pub(super) fn new(entry: Arc<Entry>, owner: Arc<Owner>) -> Self {
        let seen = entry.state.subscribe();
        Self { held: Arc::new(Held { entry, owner }), seen }
    }

    /// The name of the resource.
    pub fn resource(&self) -> &str {
        &self.held.entry.resource
    }

    /// What may be used now.
    pub fn capacity(&self) -> Amount {
        self.state().capacity_at(Instant::now())
    }

    /// Why that may be used.
    pub fn basis(&self) -> Basis {
        self.state().basis_at(Instant::now())
    }

    /// What the client knows of its lease.
    pub fn state(&self) -> LeaseState {
        *self.held.entry.state.borrow()
    }

    /// Waits until [`state`](Self::state) differs from what it was at the last call, or what may be used has changed
    /// because the lease has ended. Returns at once if it has changed before the first call.
    ///
    /// # Errors
    /// The client is closed, so that nothing will change any more.
    pub async fn changed(&mut self) -> Result<(), LeaseClientClosed> {
        let mut ended = self.held.owner.0.ended.subscribe();
        tokio::select! {
            biased;
            _ = self.seen.changed() => Ok(()),
            _ = ended.wait_for(|ended| *ended) => Err(LeaseClientClosed),
        }
    }

    /// What the client asks for.
    pub fn wants(&self) -> Amount {
        self.held.entry.demand().want.wants
    }

    /// Asks for this much from the next request on.
    pub fn set_wants(&self, wants: Amount) {
        self.held.entry.set_wants(wants);
    }
}

/// The client of a lease is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClientClosed;

impl fmt::Display for LeaseClientClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client of this lease is closed")
    }
}

impl Error for LeaseClientClosed {}
