//! What one connection is doing, with the tunnel that it may become.

use std::sync::{Arc, Mutex, PoisonError};

use crate::listen;

use crate::proxy::tunnel::Tunnel;

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Activity {
    requests: Arc<listen::Activity>,
    tunnel: Mutex<Option<Tunnel>>,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { requests: listen::Activity::new(), tunnel: Mutex::new(None) })
    }

    /// The requests of the connection, until it becomes a tunnel.
    pub(crate) fn requests(&self) -> &Arc<listen::Activity> {
        &self.requests
    }

    /// Stores the tunnel that runs once the connection has been upgraded.
    pub(crate) fn upgrade(&self, tunnel: Tunnel) {
        self.requests.upgrade();
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    }

    pub(crate) fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
