use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::breaker::{Backoff, Permit};
use sluicegate_core::adapter::{Background, Debit};

use crate::failure::{Failure, FailureKind};
use crate::observe::counts::Counters;
use crate::places::{Claim, Places};
use crate::refusals::Refusals;
use crate::rows::{Naming, row_key};
use crate::runtime::Runtime;
use crate::script::Caller;
use crate::wire::node::Node;
use crate::wire::route::Route;

/// What all clones of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) naming: Naming,
    pub(crate) route: Route,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) background: Arc<Background>,
    pub(crate) refusals: Refusals,
    pub(crate) places: Arc<Places>,
    /// How long a decision may take.
    pub(crate) deadline: Duration,
    /// How long work in the background may take.
    pub(crate) grace: Duration,
    pub(crate) backoff: Backoff,
}

impl Shared {
    /// This process, as scripts see it, and the claim that a call makes on places. In tests, scripts use the store's
    /// clock instead of the server's.
    pub(crate) fn caller(&self, claim: Option<&Claim>) -> Caller {
        Caller {
            now: self.runtime.clock.as_manual().map(ManualClock::now),
            holder: self.places.holder(),
            lease: self.places.lease(),
            turn: claim.map_or(0, Claim::turn),
        }
    }

    /// A call has ended. Tells the node that was called, if it is known. After a failure, looks at the servers.
    pub(crate) fn learn(
        &self,
        called: Option<(&Arc<Node>, &mut Permit)>,
        outcome: Result<(), &Failure>,
    ) {
        if let Some((node, permit)) = called {
            node.learn(permit, outcome);
        }
        if outcome.is_err_and(|failure| failure.kind() != FailureKind::WrongType) {
            self.route.look();
        }
    }

    pub(crate) fn key(&self, debit: &Debit) -> Vec<u8> {
        row_key(&self.naming, &debit.key, &debit.limit)
    }
}
