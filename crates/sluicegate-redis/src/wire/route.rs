use std::sync::Arc;

use crate::failure::Failure;
use crate::observe::counts::BreakerState;
use crate::rows::slot;
use crate::wire::cluster::Cluster;
use crate::wire::node::Node;

/// How calls find the server that has a row.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// A single server has all rows.
    One(Arc<Node>),
    /// The node that serves the row's slot.
    Cluster(Arc<Cluster>),
}

impl Route {
    /// The slot of a row. Rows of one slot can be used in one script.
    pub(crate) fn slot(&self, key: &[u8]) -> u16 {
        match self {
            Self::One(_) => 0,
            Self::Cluster(_) => slot(key),
        }
    }

    /// The node that serves `slot`, if it is known.
    pub(crate) fn known(&self, slot: u16) -> Option<Arc<Node>> {
        match self {
            Self::One(node) => Some(Arc::clone(node)),
            Self::Cluster(cluster) => cluster.known(slot),
        }
    }

    /// The node that serves `slot`.
    pub(crate) async fn node(self, slot: u16) -> Result<Arc<Node>, Failure> {
        match self {
            Self::One(node) => Ok(node),
            Self::Cluster(cluster) => cluster.node(slot).await,
        }
    }

    /// Whether no call may be sent at the moment, because a single server's breaker is open.
    pub(crate) fn is_shut(&self) -> bool {
        matches!(self, Self::One(node) if node.is_shut())
    }

    /// Asks which node serves which slot by now, after a failure.
    pub(crate) fn look(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.look();
        }
    }

    /// Connects before the first call.
    pub(crate) fn start(&self) {
        match self {
            Self::One(node) => node.start(),
            Self::Cluster(cluster) => cluster.look(),
        }
    }

    /// Open if the breaker of any node is.
    pub(crate) fn breaker(&self) -> BreakerState {
        let nodes = match self {
            Self::One(node) => vec![Arc::clone(node)],
            Self::Cluster(cluster) => cluster.nodes(),
        };
        let states = nodes.iter().map(|node| node.breaker().state());
        states.into_iter().find(|state| *state == BreakerState::Open).unwrap_or_default()
    }
}
