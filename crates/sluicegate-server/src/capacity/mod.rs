//! Capacity that clients share: how much there is, who draws on it, and the pool that divides it.
//!
//! A file says what there is to share: [`Capacities::read`] shows one. One [`Pool`] divides it
//! among all clients, whatever they speak. [`Shared`] has it, by [`Service::capacity`](crate::Service::capacity):
//! Each client needs a name in the pool that no other has.

mod callers;
mod file;
mod plan;

use std::fmt;
use std::sync::{Arc, OnceLock};

use sluicegate_config::Event;
use sluicegate_lease::{AlwaysMaster, CapacityService, Pool, Server};

use self::callers::check;
use crate::policies::LiveCapacities;

pub(crate) use self::plan::Source;
pub use self::plan::{BucketId, Capacities};

/// The largest message of a client of leases, in bytes. A request for 1,000 resources with long names fits.
const LARGEST: usize = 512 * 1024;

/// The pool of a service, and the file that it divides by. Clones are the same pool.
#[derive(Clone)]
pub struct Shared(Arc<Inner>);

struct Inner {
    capacities: LiveCapacities,
    is_first: bool,
    leases: OnceLock<CapacityService>,
}

impl Shared {
    pub(crate) fn new(capacities: LiveCapacities, is_first: bool) -> Self {
        Self(Arc::new(Inner { capacities, is_first, leases: OnceLock::new() }))
    }

    /// The capacities in force. Another value after each reload.
    pub(crate) fn capacities(&self) -> Arc<Capacities> {
        self.0.capacities.in_force()
    }

    /// The gRPC service for clients of leases, over the same pool. It starts with the first call.
    ///
    /// # Panics
    ///
    /// If the first call is outside of a Tokio runtime.
    pub(crate) fn leases(&self) -> &CapacityService {
        self.0.leases.get_or_init(|| self.start())
    }

    /// Uses the pool, with its time in milliseconds. Others wait meanwhile.
    ///
    /// # Panics
    ///
    /// Like [`leases`](Self::leases).
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut Pool, u64) -> T) -> T {
        self.leases().with_time(|server, now| use_it(server.pool(), now))
    }

    /// Looks at the pool, if it has started.
    pub(crate) fn if_started<T>(&self, look: impl FnOnce(&Pool) -> T) -> Option<T> {
        self.0.leases.get().map(|leases| leases.with(|server| look(server.pool())))
    }

    fn start(&self) -> CapacityService {
        let server = Server::root("sluicegate", self.capacities().templates().clone());
        let master = AlwaysMaster::new();
        let master = if self.0.is_first { master.first() } else { master };
        let in_force = self.0.capacities.clone();
        let started = CapacityService::builder(server)
            .mastership(master)
            .check(move |_, call| check(&in_force.in_force(), call))
            .max_message(LARGEST)
            .start();
        let leases = started.expect("a root has no parent");
        let shared = Arc::downgrade(&self.0);
        self.0.capacities.live().on_event(move |event| {
            let (Event::Reloaded(_), Some(inner)) = (event, shared.upgrade()) else { return };
            let templates = inner.capacities.in_force().templates().clone();
            if let Some(leases) = inner.leases.get() {
                leases.with(|server| server.pool().set_templates(templates));
            }
        });
        leases
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.0.capacities).finish()
    }
}
