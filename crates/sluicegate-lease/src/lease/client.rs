use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sluicegate_core::adapter::ConfigError;

use super::handle::{Lease, Owner};
use super::shared::{Entry, Shared};
use super::task::Task;
use super::transport::{Transport, TransportError};
use crate::amount::Amount;
use crate::client::{MOST_AT_ONCE, OnLoss, Session};
use crate::fair::Demand;
use crate::limit::Wants;
use crate::message::millis;
use crate::pool::MAX_NAME;

/// Leases resources from a server, and renews the leases.
///
/// The client has two halves. A [`Lease`] is what the application calls; it never waits for the network. A task in the
/// background asks the server for all resources in one request, before their leases end. Handles are cheap to clone.
/// When the last handle of the client and the last lease are dropped, the task gives everything back and ends.
#[derive(Debug, Clone)]
pub struct LeaseClient {
    owner: Arc<Owner>,
}

impl LeaseClient {
    /// Makes a client with a random name that reaches its server by `transport`.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    pub fn over(transport: impl Transport) -> Self {
        LeaseClientBuilder::default().over(transport)
    }

    /// Makes a client that is configured further.
    pub fn builder() -> LeaseClientBuilder {
        LeaseClientBuilder::default()
    }

    /// Leases a resource. The name is that of a resource on the server.
    pub fn resource(&self, resource: impl Into<Box<str>>) -> LeaseBuilder {
        LeaseBuilder {
            owner: self.owner.clone(),
            resource: resource.into(),
            demand: Demand::of(Amount::ZERO),
            wants: Wants::learned(),
            on_loss: OnLoss::default(),
            safe: Amount::ZERO,
        }
    }

    /// Why the last request was not answered in full, for logs; `None` if it was, or if none was sent yet.
    ///
    /// Its [source](std::error::Error::source) says more.
    pub fn problem(&self) -> Option<Arc<TransportError>> {
        self.owner.0.problem()
    }

    /// Gives all leases back, and waits until the server knows it, for at most two seconds. Nothing may be used after
    /// that, also with [`OnLoss::Keep`] or [`OnLoss::Safe`].
    ///
    /// Closing a client that is closed does nothing.
    pub async fn close(&self) {
        let shared = &self.owner.0;
        shared.close();
        // The sender lives as long as `shared`.
        let _ = shared.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

/// Configures a [`LeaseClient`].
#[derive(Debug, Clone, Default)]
pub struct LeaseClientBuilder {
    name: Option<Box<str>>,
    timeout: Option<Duration>,
}

impl LeaseClientBuilder {
    /// Sets the name by which the server knows this client: for people, and for servers that check who calls. Processes of
    /// one name are clients of their own. So a process that crashes and starts anew gets at once what is free, and its full
    /// share when its last lease has ended, unless it gave that back.
    ///
    /// # Panics
    /// The name is empty or longer than 256 bytes.
    #[must_use]
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        let name = name.into();
        assert!(
            (1..=MAX_NAME).contains(&name.len()),
            "the name of a client has 1 to {MAX_NAME} bytes, not {}",
            name.len()
        );
        self.name = Some(name);
        self
    }

    /// Sets after which time a request without an answer has failed. The default is 5 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes a client that reaches its server by `transport`.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    pub fn over(self, transport: impl Transport) -> LeaseClient {
        let random = RandomState::new().hash_one(std::process::id());
        let name = self.name.unwrap_or_else(|| format!("client-{random:016x}").into());
        let mut session =
            Session::new(name, sequence_of_this_run(), random).instance(random.max(FIRST_INSTANCE));
        if let Some(timeout) = self.timeout {
            session = session.timeout(millis(timeout));
        }
        let shared = Arc::new(Shared::new());
        tokio::spawn(Task::new(session, transport, shared.clone()).run());
        LeaseClient { owner: Arc::new(Owner(shared)) }
    }
}

/// Smaller numbers have a meaning of their own.
const FIRST_INSTANCE: u64 = 2;

/// Larger than every sequence number of an earlier process of the same name.
fn sequence_of_this_run() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    millis(since) << 16
}

/// Configures one resource of a [`LeaseClient`].
#[derive(Debug, Clone)]
pub struct LeaseBuilder {
    owner: Arc<Owner>,
    resource: Box<str>,
    demand: Demand,
    wants: Wants,
    on_loss: OnLoss,
    safe: Amount,
}

impl LeaseBuilder {
    /// Sets how much the client could use: an [`Amount`], or [`Wants::learned`] by a [limit](Lease::limit), which is the
    /// default. It gets no more than that. See [`Lease::set_wants`].
    #[must_use]
    pub fn wants(mut self, wants: impl Into<Wants>) -> Self {
        self.wants = wants.into();
        self
    }

    /// Sets the weight of this client among all clients of the resource. The default is 1.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.demand = self.demand.weight(weight);
        self
    }

    /// Sets the band of priority. Band 0, the default, is served first.
    #[must_use]
    pub fn band(mut self, band: u8) -> Self {
        self.demand = self.demand.band(band);
        self
    }

    /// Sets what may be used when the lease has ended and the server was not reached. The default is to stop.
    #[must_use]
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = on_loss;
        self
    }

    /// Sets what [`OnLoss::Safe`] uses until the server has said what is safe. The default is nothing.
    #[must_use]
    pub fn safe(mut self, safe: Amount) -> Self {
        self.safe = safe;
        self
    }

    /// Begins to lease the resource.
    ///
    /// # Errors
    /// The name or the weight cannot be right, this client leases the resource already, or the client is closed.
    pub fn lease(self) -> Result<Lease, ConfigError> {
        let resource = &self.resource;
        let error = |problem: String| Err(ConfigError::new(problem));
        if !(1..=MAX_NAME).contains(&resource.len()) {
            let bytes = resource.len();
            return error(format!("the name of a resource has 1 to {MAX_NAME} bytes, not {bytes}"));
        }
        if self.demand.want.weight == 0 {
            return error(format!("the lease of `{resource}` has a weight of zero"));
        }
        let shared = &self.owner.0;
        let mut wanted = shared.wanted();
        // It has also ended if its runtime has.
        if wanted.is_closed || *shared.ended.borrow() {
            return error(format!("`{resource}` cannot be leased by a client that is closed"));
        }
        if wanted.entries.iter().any(|entry| entry.resource == *resource) {
            return error(format!(
                "this client leases `{resource}` already: clone that lease instead"
            ));
        }
        if wanted.entries.len() >= MAX_RESOURCES {
            return error(format!(
                "this client leases {MAX_RESOURCES} resources already, without `{resource}`"
            ));
        }
        let entry = Entry::new(&self.resource, self.demand, self.wants, self.on_loss, self.safe);
        let entry = Arc::new(entry);
        wanted.entries.push(entry.clone());
        drop(wanted);
        shared.changed.notify_one();
        Ok(Lease::new(entry, self.owner))
    }
}

/// All are given back in one release, and by default a server takes no more in it.
const MAX_RESOURCES: usize = MOST_AT_ONCE;
