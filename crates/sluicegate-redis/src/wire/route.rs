//! Who is asked for a row.

use std::sync::Arc;

use crate::failure::Failure;
use crate::observe::counts::BreakerState;
use crate::rows::slot;
use crate::wire::cluster::Cluster;
use crate::wire::node::Node;

/// Who is asked for a row.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// One server, whatever the row.
    One(Arc<Node>),
    /// The node that serves the row's slot.
    Cluster(Arc<Cluster>),
}

impl Route {
    /// Rows of one number can be asked in one script.
    pub(crate) fn slot(&self, key: &[u8]) -> u16 {
        match self {
            Self::One(_) => 0,
            Self::Cluster(_) => slot(key),
        }
    }

    /// Who serves `slot`, as far as that is known already.
    pub(crate) fn known(&self, slot: u16) -> Option<Arc<Node>> {
        match self {
            Self::One(node) => Some(Arc::clone(node)),
            Self::Cluster(cluster) => cluster.known(slot),
        }
    }

    /// Who serves `slot`.
    pub(crate) async fn node(self, slot: u16) -> Result<Arc<Node>, Failure> {
        match self {
            Self::One(node) => Ok(node),
            Self::Cluster(cluster) => cluster.node(slot).await,
        }
    }

    /// Whether nobody may ask whomever it is about.
    pub(crate) fn is_shut(&self) -> bool {
        matches!(self, Self::One(node) if node.is_shut())
    }

    /// Looks who serves what by now: a node has failed.
    pub(crate) fn look(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.look();
        }
    }

    /// Connects before anybody asks.
    pub(crate) fn start(&self) {
        match self {
            Self::One(node) => node.start(),
            Self::Cluster(cluster) => cluster.look(),
        }
    }

    /// Open, if that of any node is.
    pub(crate) fn breaker(&self) -> BreakerState {
        let nodes = match self {
            Self::One(node) => vec![Arc::clone(node)],
            Self::Cluster(cluster) => cluster.nodes(),
        };
        let states = nodes.iter().map(|node| node.breaker().state());
        states.into_iter().find(|state| *state == BreakerState::Open).unwrap_or_default()
    }
}
