//! Which of several servers of leases is the master.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_lease::pool::Change;
use sluicegate_lease::{Mastership, Role, candidate_problem};
use tokio::sync::watch;

use crate::config_error::ConfigError;
use crate::exchange::campaign::{record, run, write};
use crate::rows::mastership_keys;
use crate::script::master::Candidate;
use crate::store::Redis;

impl Redis {
    /// Makes this process a candidate for the mastership of `name`, whose clients find it at `address`.
    ///
    /// One key in Redis says which of the candidates is the master, until when by the server's clock, and with which fence:
    /// a number that grows with each master. A set has the clients that may hold leases, so that a new master knows whom to
    /// wait for. Neither expires. Where Redis has lost them, the next master takes a larger fence than any that the
    /// candidates remember, and lets clients keep what they have for the time of a lease. A new master reads the set in
    /// pages of about a thousand clients, and leads after the last one.
    ///
    /// A candidate is elected, and stays the master, only as long as it hears the answers: each call says which end of the
    /// mastership was heard last.
    ///
    /// A replica that becomes Redis' master may not have got the last writes, and a clock of Redis that jumps ends a
    /// mastership early. Two servers may then be master for the time of a lease. Clients obey the one with the larger fence.
    ///
    /// ```no_run
    /// use sluicegate_lease::{CapacityService, Server, Templates};
    /// use sluicegate_redis::Redis;
    ///
    /// # fn example(templates: Templates) -> Result<(), Box<dyn std::error::Error>> {
    /// let redis = Redis::connect("redis://127.0.0.1:6379")?;
    /// let mastership = redis.mastership("quota", "http://10.0.0.7:8083").stand()?;
    /// let server = Server::root("quota", templates);
    /// let service = CapacityService::builder(server).mastership(mastership).start()?;
    /// # let _ = service;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mastership(&self, name: &str, address: &str) -> Candidacy {
        Candidacy {
            redis: self.clone(),
            name: name.to_owned(),
            address: address.to_owned(),
            lease: Duration::from_secs(2),
            longest: Duration::from_secs(600),
        }
    }
}

/// How this process stands for a mastership: see [`Redis::mastership`].
#[derive(Debug, Clone)]
#[must_use = "`stand` makes it a candidate"]
pub struct Candidacy {
    redis: Redis,
    name: String,
    address: String,
    lease: Duration,
    longest: Duration,
}

impl Candidacy {
    /// Sets how long a master that is not heard of stays the master, 2 s by default. It calls four times in this time. Another
    /// candidate takes over within a quarter of it after that.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the longest lease that servers of this name grant to a client, 10 minutes by default; the same in every server.
    ///
    /// Where Redis had no list of clients, or has lost it, masters learn from everybody for as long as this. After that, the
    /// list has everybody who may hold a lease.
    pub fn longest_lease(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Becomes a candidate, and campaigns in the background.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime, the name or the address is empty or longer than 1,024 bytes, or the lease is shorter
    /// than 100 ms or longer than a minute, or the longest lease of a client is longer than a year.
    pub fn stand(self) -> Result<Elected, ConfigError> {
        let shared = &self.redis.0;
        if let Some(problem) = candidate_problem(&self.name, &self.address) {
            return Err(ConfigError::new(problem));
        }
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(60));
        if !(shortest..=longest).contains(&self.lease) {
            let lease = self.lease;
            return Err(ConfigError::new(format!(
                "the lease is {lease:?}, but must be from {shortest:?} to {longest:?}"
            )));
        }
        if self.longest > Duration::from_secs(366 * 86_400) {
            let longest = self.longest;
            return Err(ConfigError::new(format!(
                "the longest lease of a client is {longest:?}, but must be at most a year"
            )));
        }
        if shared.runtime.handle().is_none() {
            return Err(ConfigError::new("there is no tokio runtime to campaign in"));
        }
        let candidate = Arc::new(Candidate {
            keys: mastership_keys(&shared.naming, &self.name),
            number: RandomState::new().hash_one("candidate") >> 12 | 1,
            lease: self.lease.as_micros() as u64,
            longest: self.longest.as_micros() as u64,
            address: self.address,
        });
        let (sender, roles) = watch::channel(Role::Other { master: None });
        let held = Arc::new(());
        let alive = Arc::downgrade(&held);
        shared.runtime.spawn(run(Arc::clone(shared), Arc::clone(&candidate), sender, alive));
        Ok(Elected { redis: self.redis, candidate, roles, _held: held })
    }
}

/// A candidate for a mastership, and the master if it is elected. Dropped, it resigns: another candidate takes over within a
/// quarter of the lease.
#[derive(Debug)]
pub struct Elected {
    redis: Redis,
    candidate: Arc<Candidate>,
    roles: watch::Receiver<Role>,
    _held: Arc<()>,
}

impl Mastership for Elected {
    fn roles(&self) -> watch::Receiver<Role> {
        self.roles.clone()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let fence = match &*self.roles.borrow() {
            Role::Master { fence, .. } => *fence,
            Role::Other { .. } => return Err("this server is not the master".into()),
        };
        let changes: Vec<_> = changes.iter().map(change).collect();
        match record(&self.redis.0, &self.candidate, fence, &changes).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("another server is the master".into()),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn change(change: &Change) -> (bool, Vec<u8>) {
    match change {
        Change::Joined { resource, client } => (true, write(resource, client)),
        Change::Left { resource, client } => (false, write(resource, client)),
    }
}
