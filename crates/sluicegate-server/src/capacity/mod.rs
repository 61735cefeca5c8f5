//! Capacity that clients share: how much there is, who draws on it, and the pool that divides it.
//!
//! A file says what there is to share: [`Capacities::read`] shows one. One [`Pool`] divides it
//! among all clients, whatever they speak. [`Shared`] has it, by [`Service::capacity`](crate::Service::capacity):
//! Each client needs a name in the pool that no other has.

mod callers;
mod contact;
mod election;
mod file;
mod lines;
mod live;
mod passing;
mod plan;
mod pulse;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sluicegate_config::Event;
use sluicegate_lease::{CapacityService, Pool, Server};

use self::callers::{ENVOY, check};
pub(crate) use self::election::Election;
pub use self::file::LONGEST_LEASE;
pub(crate) use self::live::LiveCapacities;
pub(crate) use self::passing::{Masters, Passing};

pub(crate) use self::plan::Source;
pub use self::plan::{BucketId, Capacities};
use self::pulse::Pulse;

/// The largest message of a client of leases, in bytes. A request for 1,000 resources with long names fits.
const LARGEST: usize = 512 * 1024;

/// The pool of a service, and the file that it divides by. Clones are the same pool.
#[derive(Clone)]
pub struct Shared(Arc<Inner>);

struct Inner {
    capacities: LiveCapacities,
    /// Until the pool starts.
    election: Mutex<Option<Election>>,
    masters: Option<Masters>,
    pulse: Arc<Pulse>,
    leases: OnceLock<CapacityService>,
}

impl Shared {
    pub(crate) fn new(capacities: LiveCapacities, election: Election) -> Self {
        let pulse = Pulse::new();
        let masters = election.among.clone().map(|among| Masters::new(among, Arc::clone(&pulse)));
        let (election, leases) = (Mutex::new(Some(election)), OnceLock::new());
        Self(Arc::new(Inner { capacities, election, masters, pulse, leases }))
    }

    /// The servers among which one is the master, unless this is the only one.
    pub(crate) fn masters(&self) -> Option<&Masters> {
        self.0.masters.as_ref()
    }

    /// Passes calls of the service on, while another server is the master. Streams end when this server stops.
    pub(crate) fn passing<S>(&self, service: S, is_stream: bool) -> Passing<S> {
        Passing::new(service, self.0.masters.clone(), is_stream)
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

    /// How often this process stood still for so long that what was on its way through it counts as lost.
    pub(crate) fn pauses(&self) -> u64 {
        self.0.pulse.pauses()
    }

    /// Looks at the pool, if it has started.
    pub(crate) fn if_started<T>(&self, look: impl FnOnce(&Pool) -> T) -> Option<T> {
        self.0.leases.get().map(|leases| leases.with(|server| look(server.pool())))
    }

    fn start(&self) -> CapacityService {
        let mut server = Server::root("sluicegate", self.capacities().templates().clone());
        server.pool().set_renamed(ENVOY);
        let in_force = self.0.capacities.clone();
        let service = CapacityService::builder(server)
            .check(move |_, call| check(&in_force.in_force(), call))
            .max_message(LARGEST);
        let election = self.0.election.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Election { stand, among } = election.unwrap_or_else(|| Election::alone(false));
        let leases = stand(service).start().expect("a root has no parent");
        tokio::spawn(Pulse::beat(Arc::downgrade(&self.0.pulse)));
        if let Some((among, masters)) = among.zip(self.masters().cloned()) {
            tokio::spawn(election::log(among.roles, move |role| masters.set_role(role)));
        }
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
