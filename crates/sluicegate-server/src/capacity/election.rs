//! Which of several servers divides the capacity.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluicegate_lease::pool::Change;
use sluicegate_lease::{AlwaysMaster, CapacityServiceBuilder, Mastership, Role};
use tokio::sync::watch;

/// Says whether this server is the one that divides the capacity.
pub(crate) struct Election {
    pub(super) stand: Box<dyn FnOnce(CapacityServiceBuilder) -> CapacityServiceBuilder + Send>,
    /// None for a server that is the only one.
    pub(super) among: Option<Among>,
}

/// What a server that is one of several hears and says.
#[derive(Debug, Clone)]
pub(super) struct Among {
    pub(super) roles: watch::Receiver<Role>,
    /// Set once the server stops: it gives up the mastership then.
    pub(super) is_stopping: watch::Sender<bool>,
}

impl Election {
    /// A server that is the only one. `is_first` says that nobody holds a lease of one before it.
    pub(crate) fn alone(is_first: bool) -> Self {
        let stand = move |service: CapacityServiceBuilder| {
            let master = AlwaysMaster::new();
            service.mastership(if is_first { master.first() } else { master })
        };
        Self { stand: Box::new(stand), among: None }
    }

    /// One of several servers.
    pub(crate) fn among(mastership: impl Mastership) -> Self {
        let (heard, is_stopping) = (mastership.roles(), watch::Sender::new(false));
        let (tell, roles) = watch::channel(heard.borrow().clone());
        let among = Some(Among { roles: roles.clone(), is_stopping: is_stopping.clone() });
        let stand = move |service: CapacityServiceBuilder| {
            let held = Arc::new(Mutex::new(Some(Arc::new(mastership))));
            tokio::spawn(until_stopping(heard, tell, is_stopping.subscribe(), Arc::clone(&held)));
            service.mastership(GivenUp { held, roles })
        };
        Self { stand: Box::new(stand), among }
    }
}

/// A mastership until the server stops. A master that stops would otherwise stay it, while it answers less and less, and
/// the others would pass calls on to nobody.
struct GivenUp<M> {
    /// None once it was given up.
    held: Arc<Mutex<Option<Arc<M>>>>,
    roles: watch::Receiver<Role>,
}

impl<M: Mastership> Mastership for GivenUp<M> {
    fn roles(&self) -> watch::Receiver<Role> {
        self.roles.clone()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match held {
            Some(mastership) => mastership.record(changes).await,
            None => Err("this server stops".into()),
        }
    }
}

/// Time to step down before the mastership is another's. It takes no more than the next turn of a task.
const STEPPING_DOWN: Duration = Duration::from_millis(100);

/// Tells what it hears until the server stops. Then nobody is the master, as far as this server knows.
async fn until_stopping<M>(
    mut heard: watch::Receiver<Role>,
    tell: watch::Sender<Role>,
    mut stopping: watch::Receiver<bool>,
    held: Arc<Mutex<Option<Arc<M>>>>,
) {
    heard.mark_changed();
    loop {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => break,
            changed = heard.changed() => match changed {
                Ok(()) => drop(tell.send_replace(heard.borrow_and_update().clone())),
                // Nobody tells any more.
                Err(_) => return,
            },
        }
    }
    tell.send_replace(Role::Other { master: None });
    tokio::time::sleep(STEPPING_DOWN).await;
    // Dropped, it resigns. Nobody tells any more once it has.
    held.lock().unwrap_or_else(PoisonError::into_inner).take();
    while heard.changed().await.is_ok() {}
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("among", &self.among).finish_non_exhaustive()
    }
}

/// Tells the log of each change of the master, and `tell` of each role.
pub(super) async fn log(mut roles: watch::Receiver<Role>, tell: impl Fn(&Role)) {
    // Nobody is known before the first answer of the store.
    let mut last = Some(Err(None));
    roles.mark_changed();
    while roles.changed().await.is_ok() {
        let role = roles.borrow_and_update().clone();
        tell(&role);
        let role = match role {
            Role::Master { fence, .. } => Ok(fence),
            Role::Other { master } => Err(master),
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
