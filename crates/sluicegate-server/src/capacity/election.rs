//! Which of several servers divides the capacity.

use std::fmt;

use sluicegate_lease::{AlwaysMaster, CapacityServiceBuilder, Mastership, Role};
use tokio::sync::watch;

/// Says whether this server is the one that divides the capacity.
pub(crate) struct Election {
    pub(super) stand: Box<dyn FnOnce(CapacityServiceBuilder) -> CapacityServiceBuilder + Send>,
    /// None for a server that is the only one.
    pub(super) roles: Option<watch::Receiver<Role>>,
}

impl Election {
    /// A server that is the only one. `is_first` says that nobody holds a lease of one before it.
    pub(crate) fn alone(is_first: bool) -> Self {
        let stand = move |service: CapacityServiceBuilder| {
            let master = AlwaysMaster::new();
            service.mastership(if is_first { master.first() } else { master })
        };
        Self { stand: Box::new(stand), roles: None }
    }

    /// One of several servers.
    pub(crate) fn among(mastership: impl Mastership) -> Self {
        let roles = Some(mastership.roles());
        Self { stand: Box::new(|service| service.mastership(mastership)), roles }
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("roles", &self.roles).finish_non_exhaustive()
    }
}

/// Tells the log of each change of the master.
pub(super) async fn log(mut roles: watch::Receiver<Role>) {
    // Nobody is known before the first answer of the store.
    let mut last = Some(Err(None));
    roles.mark_changed();
    while roles.changed().await.is_ok() {
        let role = match &*roles.borrow_and_update() {
            Role::Master { fence, .. } => Ok(*fence),
            Role::Other { master } => Err(master.clone()),
        };
        match &role {
            same if last.as_ref() == Some(same) => {}
            Ok(fence) => tracing::info!(fence, "this server divides the capacity"),
            Err(Some(master)) => tracing::info!(%master, "another server divides the capacity"),
            Err(None) => tracing::info!("no server is known that divides the capacity"),
        }
        last = Some(role);
    }
}
