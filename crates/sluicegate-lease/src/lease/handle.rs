use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sluicegate_core::limit::LimitError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::shared::{Basis, Entry, LeaseState, Shared};
use crate::amount::Amount;
use crate::limit::{LeasedBuilder, LeasedLimit, Wants};

/// A part of a resource that a [`LeaseClient`](super::LeaseClient) leases: the half of the client that never waits for
/// the network.
///
/// Clones are the same lease. When the last of them is dropped, the client gives the lease back.
#[derive(Debug, Clone)]
pub struct Lease {
    held: Arc<LeaseGuard>,
    seen: watch::Receiver<LeaseState>,
}

/// Gives a lease back when it is dropped.
#[derive(Debug)]
struct LeaseGuard {
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

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let shared = &self.owner.0;
        shared.wanted().entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        shared.changed.notify_one();
    }
}

impl Lease {
    pub(super) fn new(entry: Arc<Entry>, owner: Arc<Owner>) -> Self {
        let seen = entry.state.subscribe();
        Self { held: Arc::new(LeaseGuard { entry, owner }), seen }
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

    /// Asks for this much from the next request on: an [`Amount`], or [`Wants::learned`] if a limit follows the lease.
    pub fn set_wants(&self, wants: impl Into<Wants>) {
        self.held.entry.set_wants(wants.into());
    }

    /// A limit of requests a second that follows this lease, named after the resource.
    ///
    /// # Errors
    /// Those of [`limit`](Self::limit).
    pub fn rate(&self) -> Result<LeasedLimit, LimitError> {
        self.limit(LeasedLimit::rate(self.resource()))
    }

    /// A limit of requests in flight that follows this lease, named after the resource.
    ///
    /// # Errors
    /// Those of [`limit`](Self::limit).
    pub fn gauge(&self) -> Result<LeasedLimit, LimitError> {
        self.limit(LeasedLimit::gauge(self.resource()))
    }

    /// A limit that follows this lease, such as `LeasedLimit::rate("money").per(day)`. It wants what this lease wants, and
    /// keeps the lease as long as it lives. When something is asked of a limit that has nothing, because nothing was asked
    /// for a while, the client asks its server at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate::{Global, RateLimitLayer, Rejection};
    /// use sluicegate_lease::client::OnLoss;
    /// use sluicegate_lease::{Amount, InProcess, LeaseClient, LeasedLimit, Template, Templates, Wants};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = InProcess::new(Templates::new([Template::new("*", Amount::units(100))])?);
    /// # let client = LeaseClient::over(server);
    /// let lease = client.resource("db").wants(Wants::learned()).on_loss(OnLoss::Safe).lease()?;
    /// let db = lease.limit(LeasedLimit::rate("db").burst(20))?;
    /// let layer = RateLimitLayer::new(db.limit().by(Global))
    ///     .store(db)
    ///     .rejection(Rejection::queue(Duration::from_millis(500)));
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A setting is bad, such as a name that is longer than 31 bytes; or a limit follows this lease already, because two
    /// would use it twice.
    pub fn limit(&self, builder: LeasedBuilder) -> Result<LeasedLimit, LimitError> {
        let entry = &self.held.entry;
        let limit = entry.make_limit(|| {
            let limit = builder.wants(entry.wants()).follows(self.clone()).build()?;
            let (entry, shared) = (Arc::downgrade(entry), Arc::downgrade(&self.held.owner.0));
            limit.on_need(move || {
                let (Some(entry), Some(shared)) = (entry.upgrade(), shared.upgrade()) else {
                    return;
                };
                entry.is_needed.store(true, Ordering::Relaxed);
                shared.changed.notify_one();
            });
            Ok(limit)
        });
        let limit = limit.unwrap_or(Err(TWICE))?;
        // The task tells the limit what is held.
        self.held.owner.0.changed.notify_one();
        Ok(limit)
    }
}

const TWICE: LimitError = LimitError::new(
    "a limit follows this lease already, and two would use it twice: clone that limit",
);

/// The client of a lease is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClientClosed;

impl fmt::Display for LeaseClientClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client of this lease is closed")
    }
}

impl Error for LeaseClientClosed {}
