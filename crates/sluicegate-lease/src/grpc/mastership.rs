use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::pool::{Change, LeaseHolder};

/// Says which server is the master, and keeps the list of those that may hold a lease.
///
/// The service needs no more than this from what elects masters: all other state is told anew by clients.
///
/// [`AlwaysMaster`] is for a single server. `Redis::mastership` of `sluicegate-redis` and `etcd::Etcd` of this crate, with
/// the feature `etcd`, elect one of several. A Kubernetes `Lease` can be put here in the same way: its holder is the master,
/// `leaseTransitions` is the fence, `until` is counted from before an update of `renewTime` was sent, and the clients are in its
/// annotations, so that its `resourceVersion` keeps a late record out.
pub trait Mastership: Send + Sync + 'static {
    /// The role of this server, as it changes.
    fn roles(&self) -> watch::Receiver<Role>;

    /// Writes down that clients have come or gone. A request that makes a client known is answered after that.
    ///
    /// The same changes may come again after a failure, or after this was not waited for. Their order counts. Changes
    /// that are written late, after another server has become the master, must not count.
    ///
    /// # Errors
    /// They were not written. The client's request fails.
    fn record(
        &self,
        changes: Vec<Change>,
    ) -> impl Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send;
}

/// What a server is among those that share a name.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// It is the master.
    Master {
        /// Larger than that of every master before.
        fence: u32,
        /// It is the master until this moment, unless told otherwise. Before another server becomes the master, this
        /// moment has passed.
        until: Option<Instant>,
        /// Clients that may hold leases of earlier masters; `None` if nobody knows who they are. This counts at the
        /// beginning only.
        known: Option<Arc<[LeaseHolder]>>,
    },
    /// It is not the master.
    Other {
        /// The address of the master, if it is known.
        master: Option<Box<str>>,
    },
}

impl Role {
    /// The fence of a master whose time has not passed.
    pub(super) fn fence_at(&self, now: Instant) -> Option<u32> {
        match self {
            Self::Master { fence, until, .. } if until.is_none_or(|until| now < until) => {
                Some(*fence)
            }
            _ => None,
        }
    }
}

/// Says what is wrong with a candidate for a mastership: its name and its address have from 1 to 1,024 bytes each.
///
/// Implementations of [`Mastership`] share it.
pub fn candidate_problem(name: &str, address: &str) -> Option<String> {
    let is_wrong = |text: &str| text.is_empty() || text.len() > 1_024;
    let mut parts = [("name", name), ("address", address)].into_iter();
    let (what, text) = parts.find(|(_, text)| is_wrong(text))?;
    Some(format!("the {what} has {} bytes, but must have from 1 to 1,024", text.len()))
}

/// The mastership of a server that is the only one of its name.
///
/// After a start, it does not know who holds leases of the process before. So for the length of a lease it lets clients
/// keep what they have, and gives nothing to new ones.
#[derive(Debug)]
pub struct AlwaysMaster {
    fence: Option<u32>,
    known: Option<Arc<[LeaseHolder]>>,
}

impl Default for AlwaysMaster {
    fn default() -> Self {
        Self::new()
    }
}

impl AlwaysMaster {
    /// Takes the number of seconds since 1970 as the fence, and waits until the second begins: so no two processes
    /// that are started one after the other have the same fence.
    pub const fn new() -> Self {
        Self { fence: None, known: None }
    }

    /// Sets the fence. It has to be larger than that of every process of this server before.
    #[must_use]
    pub const fn fence(mut self, fence: u32) -> Self {
        self.fence = Some(fence);
        self
    }

    /// Nobody can hold a lease: no server of this name was there before. So there is nothing to wait for.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.known = Some(Arc::new([]));
        self
    }
}

impl Mastership for AlwaysMaster {
    fn roles(&self) -> watch::Receiver<Role> {
        let known = self.known.clone();
        let master = |fence| Role::Master { fence, until: None, known };
        if let Some(fence) = self.fence {
            return watch::Sender::new(master(fence)).subscribe();
        }
        let (role, roles) = watch::channel(Role::Other { master: None });
        tokio::spawn(async move {
            let (fence, wait) = next_second();
            tokio::time::sleep(wait).await;
            role.send_replace(master(fence));
        });
        roles
    }

    async fn record(&self, _: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// The number of the next second since 1970, and when it begins.
fn next_second() -> (u32, Duration) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let next = now.as_secs() + 1;
    (u32::try_from(next).unwrap_or(u32::MAX), Duration::from_secs(next) - now)
}

/// A [`Mastership`] of any type.
pub(super) trait DynMastership: Send + Sync {
    fn roles(&self) -> watch::Receiver<Role>;
    fn record(&self, changes: Vec<Change>) -> Recording<'_>;
}

type Recording<'a> =
    Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send + 'a>>;

impl<M: Mastership> DynMastership for M {
    fn roles(&self) -> watch::Receiver<Role> {
        Mastership::roles(self)
    }

    fn record(&self, changes: Vec<Change>) -> Recording<'_> {
        Box::pin(Mastership::record(self, changes))
    }
}
