//! Which of several servers is the master, decided by etcd.

mod campaign;
mod cluster;
#[rustfmt::skip]
#[expect(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated from proto/etcd.proto")]
mod generated;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use sluicegate_core::adapter::ConfigError;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tonic::transport::{Channel, Endpoint};

use self::campaign::{CALLS, Candidate, run};
use self::cluster::{Cluster, Keys};
use crate::grpc::{Mastership, Role, candidate_problem, server_address, with_tls};
use crate::pool::Change;

/// An etcd cluster, version 3.4 and later, that elects the master among servers of one name.
///
/// A key with a lease is there while there is a master; its value is the master's address. A second key has the last
/// fence as a decimal number, which grows with each master. Below `clients/` there is a key for each client that may hold
/// a lease, so a new master knows whom to wait for. All keys begin with `sluicegate/` and the name. If etcd has lost its
/// keys, the next master takes a larger fence than any that it remembers, and lets clients keep what they have for the
/// time of a lease. Masters from before the loss and after it may then overlap, for the time of a lease at most.
///
/// ```no_run
/// use sluicegate_lease::etcd::Etcd;
/// use sluicegate_lease::{CapacityService, Server, Templates};
///
/// # fn example(templates: Templates) -> Result<(), Box<dyn std::error::Error>> {
/// let etcd = Etcd::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"])?;
/// let mastership = etcd.mastership("quota", "http://10.0.0.7:8083").stand()?;
/// let server = Server::root("quota", templates);
/// let service = CapacityService::builder(server).mastership(mastership).start()?;
/// # let _ = service;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Etcd {
    members: Vec<Uri>,
    dial: Arc<dyn Fn(Endpoint) -> Channel + Send + Sync>,
}

impl Etcd {
    /// Takes the addresses of the members, such as `http://10.0.0.1:2379`. It connects with the first call, so etcd may be
    /// started later.
    ///
    /// # Errors
    /// There is no address, or one that cannot be right.
    pub fn new<S: AsRef<str>>(members: impl IntoIterator<Item = S>) -> Result<Self, ConfigError> {
        let members =
            members.into_iter().map(|member| server_address(member.as_ref(), &Scheme::HTTP));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        if members.is_empty() {
            return Err(ConfigError::new("there is no address of etcd"));
        }
        Ok(Self { members, dial: Arc::new(|endpoint| endpoint.connect_lazy()) })
    }

    /// Sets the authorities that may sign the certificates of the members, in PEM, instead of those of the system, and the
    /// certificate that this client shows to them, with its private key.
    ///
    /// # Errors
    /// A member has no `https://`, or a text is not what it should be.
    #[cfg(feature = "tls")]
    pub fn certificates(
        self,
        authorities: Option<&[u8]>,
        own: Option<(&[u8], &[u8])>,
    ) -> Result<Self, ConfigError> {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};

        let plain = |member: &&Uri| member.scheme() != Some(&Scheme::HTTPS);
        if let Some(plain) = self.members.iter().find(plain) {
            let what = format!("the member `{plain}` has no TLS, but certificates are given");
            return Err(ConfigError::new(what));
        }
        let has_none = |pem: &[u8]| !String::from_utf8_lossy(pem).contains(BEGIN);
        if authorities.is_some_and(has_none) {
            // They would be no authorities at all, and every certificate refused.
            return Err(ConfigError::new("there is no certificate among the authorities for etcd"));
        }
        let tls = match authorities {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        let tls = match own {
            Some((pem, key)) => tls.identity(Identity::from_pem(pem, key)),
            None => tls,
        };
        let with_tls = move |endpoint: Endpoint| endpoint.tls_config(tls.clone());
        for member in &self.members {
            with_tls(Endpoint::from(member.clone())).map_err(|error| {
                let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                ConfigError::new(format!("the certificates for etcd cannot be used: {why}"))
            })?;
        }
        Ok(self.dial(move |endpoint| {
            // It was tried.
            with_tls(endpoint.clone()).unwrap_or(endpoint).connect_lazy()
        }))
    }

    /// Sets how connections are made. The channel has to be lazy, as [`Endpoint::connect_lazy`] makes it.
    #[must_use]
    pub fn dial(mut self, dial: impl Fn(Endpoint) -> Channel + Send + Sync + 'static) -> Self {
        self.dial = Arc::new(dial);
        self
    }

    /// Makes this process a candidate for the mastership of `name`, whose clients find it at `address`.
    pub fn mastership(&self, name: &str, address: &str) -> Candidacy {
        Candidacy {
            etcd: self.clone(),
            name: name.to_owned(),
            address: address.to_owned(),
            lease: Duration::from_secs(2),
            longest: Duration::from_secs(600),
        }
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("members", &self.members).finish_non_exhaustive()
    }
}

/// How a certificate in PEM begins.
#[cfg(feature = "tls")]
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// How this process stands for a mastership: see [`Etcd::mastership`].
#[derive(Debug, Clone)]
#[must_use = "`stand` makes it a candidate"]
pub struct Candidacy {
    etcd: Etcd,
    name: String,
    address: String,
    lease: Duration,
    longest: Duration,
}

impl Candidacy {
    /// Sets how long a master that is not heard of stays the master, 2 s by default. It calls four times in this time. etcd looks
    /// for leases that are over twice a second, and lets none be shorter than one and a half times its election timeout.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the longest lease that servers of this name grant to a client, 10 minutes by default; the same in every server.
    ///
    /// Where etcd had no list of clients, or has lost it, masters learn from everybody for as long as this. After that, the
    /// list has everybody who may hold a lease.
    pub fn longest_lease(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Becomes a candidate, and campaigns in the background.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime, the name or the address is empty or longer than 1,024 bytes, the name has a slash, or the
    /// lease is not a number of whole seconds from 1 to 60, or the longest lease of a client not one from 1 to a year.
    pub fn stand(self) -> Result<EtcdMastership, ConfigError> {
        if let Some(problem) = candidate_problem(&self.name, &self.address) {
            return Err(ConfigError::new(problem));
        }
        if self.name.contains('/') {
            return Err(ConfigError::new(format!(
                "the name `{}` has a slash, which separates the parts of a key",
                self.name
            )));
        }
        let lease = self.lease;
        if !(1..=60).contains(&lease.as_secs()) || lease.subsec_nanos() != 0 {
            return Err(ConfigError::new(format!(
                "the lease is {lease:?}, but must be a number of whole seconds from 1 to 60"
            )));
        }
        let longest = self.longest;
        if !(1..=366 * 86_400).contains(&longest.as_secs()) || longest.subsec_nanos() != 0 {
            return Err(ConfigError::new(format!(
                "the longest lease of a client is {longest:?}, but must be a number of whole seconds from 1 to a year"
            )));
        }
        let runtime = Handle::try_current()
            .map_err(|_| ConfigError::new("there is no tokio runtime to campaign in"))?;
        let patience = lease / CALLS;
        let connect = |member: &Uri| {
            let endpoint = Endpoint::from(member.clone())
                .connect_timeout(patience)
                .http2_keep_alive_interval(lease)
                .keep_alive_timeout(lease);
            (self.etcd.dial)(with_tls(endpoint))
        };
        let cluster = Cluster {
            members: self.etcd.members.iter().map(connect).collect(),
            at: AtomicUsize::new(0),
            patience,
        };
        let candidate = Arc::new(Candidate {
            cluster,
            keys: Keys::new(&self.name),
            address: self.address,
            lease,
            longest,
            held: AtomicI64::new(0),
            left_behind: AtomicI64::new(0),
        });
        let (sender, roles) = watch::channel(Role::Other { master: None });
        let (held, dropped) = oneshot::channel();
        runtime.spawn(run(Arc::clone(&candidate), sender, dropped));
        Ok(EtcdMastership { candidate, roles, _held: held })
    }
}

/// A candidate for a mastership, and the master if it is elected. Dropped, it resigns: another candidate takes over within an
/// eighth of the lease.
#[derive(Debug)]
pub struct EtcdMastership {
    candidate: Arc<Candidate>,
    roles: watch::Receiver<Role>,
    _held: oneshot::Sender<()>,
}

impl Mastership for EtcdMastership {
    fn roles(&self) -> watch::Receiver<Role> {
        self.roles.clone()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if matches!(*self.roles.borrow(), Role::Other { .. }) {
            return Err("this server is not the master".into());
        }
        match self.candidate.record(&changes).await? {
            true => Ok(()),
            false => Err("another server is the master".into()),
        }
    }
}

#[cfg(test)]
mod tests;
