use std::sync::Arc;
use std::time::Duration;

use crate::observe::counts::Counters;
use crate::runtime::Runtime;
use crate::wire::backoff::Backoff;
use crate::wire::breaker::BreakerSettings;
use crate::wire::epochs::Epochs;
#[cfg(feature = "tls")]
use crate::wire::tls::Tls;

/// What all nodes of a store have in common.
#[derive(Clone)]
pub(crate) struct NodeContext {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) connect: ConnectSettings,
    pub(crate) breaker: BreakerSettings,
}

/// How connections are made.
#[derive(Debug, Clone)]
pub(crate) struct ConnectSettings {
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) client_name: Option<Arc<str>>,
    /// Whether RESP3 is tried first.
    pub(crate) resp3: bool,
    /// A connection on which a command stays unanswered for this long is closed.
    pub(crate) silence: Duration,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}
