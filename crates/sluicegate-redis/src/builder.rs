//! The configuration of a store.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::{Background, ConfigError};
use sluicegate_core::clock::Clock;

use crate::exchange::shared::Shared;
use crate::observe::counts::Counters;
use crate::places::Places;
use crate::refusals::Refusals;
use crate::rows::Naming;
use crate::runtime::Runtime;
use crate::store::Redis;
use crate::wire::Certificates;
use crate::wire::address::{self, Topology};
use crate::wire::cluster::Cluster;
use crate::wire::node::{ConnectSettings, Node, NodeContext};
use crate::wire::route::Route;
use sluicegate_core::adapter::breaker::{Backoff, BreakerSettings};

/// Configures a [`Redis`] store.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_redis::Redis;
///
/// # let _runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # let _entered = _runtime.enter();
/// let store = Redis::builder()
///     .url("redis://limiter:secret@redis.internal/2")
///     .prefix("shop:limits:")
///     .deadline(Duration::from_millis(20))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "`build` makes the store"]
pub struct RedisBuilder {
    url: Option<String>,
    topology: Topology,
    prefix: String,
    secret: Option<Vec<u8>>,
    certificates: Certificates,
    deadline: Duration,
    connect_timeout: Duration,
    reconnect: Backoff,
    breaker: BreakerSettings,
    background: (usize, Duration),
    remembered: (usize, Duration),
    lease: Duration,
    client_name: Option<String>,
    clock: Option<ManualClock>,
}

impl Redis {
    /// Makes a store in the server at `url`, with the defaults of [`builder`](Self::builder) for everything else.
    ///
    /// It returns at once, and the server need not be there yet: while it cannot be reached, decisions fail, and the
    /// store connects as soon as it can.
    ///
    /// # Errors
    ///
    /// When the URL is not valid.
    pub fn connect(url: &str) -> Result<Self, ConfigError> {
        Self::builder().url(url).build()
    }

    /// Makes a store in the cluster that the servers at `urls` belong to. A few nodes are enough: the others are found
    /// through them.
    ///
    /// # Errors
    ///
    /// When there are no URLs, or one is not valid.
    pub fn cluster<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self, ConfigError> {
        Self::builder().cluster(urls).build()
    }

    /// Configures a store.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::new()
    }
}

impl RedisBuilder {
    pub(crate) fn new() -> Self {
        let backoff = |first, longest| Backoff {
            first: Duration::from_millis(first),
            longest: Duration::from_millis(longest),
        };
        Self {
            url: None,
            topology: Topology::Server,
            prefix: "sluicegate:".to_owned(),
            secret: None,
            certificates: Certificates::default(),
            deadline: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            reconnect: backoff(20, 2_000),
            breaker: BreakerSettings { failures: 5, backoff: backoff(100, 2_000) },
            background: (4_096, Duration::from_secs(30)),
            remembered: (0, Duration::ZERO),
            lease: Duration::from_secs(10),
            client_name: None,
            clock: None,
        }
    }

    /// Sets the server: `redis://user:password@host:port/database`, `rediss://…` for TLS (feature `tls`), or
    /// `redis+unix:///path?db=2&user=…&pass=…` for a Unix socket. `?protocol=resp2` forces the older protocol. Without
    /// it, RESP2 is used only with servers that do not know RESP3.
    pub fn url(mut self, url: &str) -> Self {
        self.url = Some(url.to_owned());
        self
    }

    /// Sets the cluster that the servers at `urls` belong to. A few nodes are enough: the others are found through
    /// them.
    pub fn cluster<U: AsRef<str>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.topology = Topology::Cluster(owned(urls));
        self
    }

    /// Uses the server that the sentinels at `urls` name as master of `service`. User, password, database and TLS of
    /// the master are taken from [`url`](Self::url), if that is set; the host in it is ignored.
    pub fn sentinel<U: AsRef<str>>(
        mut self,
        service: &str,
        urls: impl IntoIterator<Item = U>,
    ) -> Self {
        self.topology = Topology::Sentinel { service: service.to_owned(), urls: owned(urls) };
        self
    }

    /// Sets the prefix of all row names, `sluicegate:` by default. Stores with the same prefix share their counts.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Names rows by a keyed digest of the key, so that keys such as addresses and API keys are not visible in Redis. The
    /// digest can be neither computed nor guessed without `secret`. All processes need the same secret.
    pub fn digest_keys(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the authorities that may sign the server's certificate, in PEM, instead of those of the system.
    #[cfg(feature = "tls")]
    pub fn certificate_authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.authorities = Some(pem.into());
        self
    }

    /// Sets the certificate that the client shows to the server, and its private key, in PEM.
    #[cfg(feature = "tls")]
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.own = Some((pem.into(), key.into()));
        self
    }

    /// Accepts a certificate that an authority has signed, even if it is for another host. Anyone who has such a certificate
    /// can then take the place of the server.
    #[cfg(feature = "tls")]
    pub fn any_host(mut self) -> Self {
        self.certificates.any_host = true;
        self
    }

    /// Sets how long a decision may take, 50 ms by default.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how long one attempt to connect may take, a second by default. Requests wait for it no longer than their
    /// deadline.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the pause after a failed attempt to connect: `first`, then twice as long each time, up to `longest`. Up to
    /// half of each pause is random. From 20 ms to 2 s by default.
    pub fn reconnect(mut self, first: Duration, longest: Duration) -> Self {
        self.reconnect = Backoff { first, longest };
        self
    }

    /// Sets after how many consecutive failures the breaker of a server opens (never, if zero), and for how long:
    /// `first`, then twice as long each time that the server still fails, up to `longest`. Up to half of each pause is
    /// random. After 5 failures, for 100 ms to 2 s by default.
    pub fn breaker(mut self, failures: u32, first: Duration, longest: Duration) -> Self {
        self.breaker = BreakerSettings { failures, backoff: Backoff { first, longest } };
        self
    }

    /// Sets how many calls may be under way at a time, and as many settlements, and how long each is awaited in the
    /// background: 4,096 and 30 s by default. Further calls fail at once with [`Full`](crate::FailureKind::Full),
    /// because they could not be given back if their answer came too late. A connection on which a call stays
    /// unanswered for that long is closed.
    pub fn background(mut self, most: usize, longest: Duration) -> Self {
        self.background = (most, longest);
        self
    }

    /// Remembers up to `rows` that have refused, each for at most `longest`, and refuses without a call until they
    /// would admit. A flood from one client then costs the server only a call now and then. Off by default. Each key
    /// has a row for each limit, which takes 68 bytes.
    ///
    /// The answer is the one that the server would give at that moment. It takes effect at once if this store admits,
    /// [settles](sluicegate_core::store::Store::settle) or [resets](sluicegate_core::store::Store::reset) a charge, if a
    /// limit is raised, and if a connection is made to a server that may have restarted. If *another process* gives
    /// back or resets a charge, that takes effect after `longest` at the latest. A second is a good choice. With
    /// [`Duration::MAX`] the server is called only when the refusal has ended. Use it where floods are likely and this
    /// delay is acceptable.
    ///
    /// Only buckets and windows are remembered. The server is always called for logs; for limits of
    /// [concurrency](sluicegate_core::Limit::concurrent), with a [gap](sluicegate_core::Limit::min_gap), with a
    /// [ban](sluicegate_core::Limit::ban), or that [count refusals](sluicegate_core::Limit::count_refused); for requests
    /// that may wait; and for requests with several keys in a cluster.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use sluicegate_redis::Redis;
    /// let builder = Redis::builder().remember_refusals(16_384, Duration::from_secs(1));
    /// ```
    pub fn remember_refusals(mut self, rows: usize, longest: Duration) -> Self {
        self.remembered = (rows, longest);
        self
    }

    /// Sets how long places of limits of [concurrency](sluicegate_core::Limit::concurrent) stay taken after the process
    /// that holds them has died, 10 s by default.
    ///
    /// A process renews its places in the background, at least twice in this time: up to 64 rows with one script, which
    /// in a cluster lie in one slot. Leases run by the server's clock, and processes may use different lengths. A process
    /// that cannot reach the server for that long, or is stopped, loses its places to others. Its requests continue, and
    /// what they give back later is taken from no other process.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use sluicegate_redis::Redis;
    /// // Requests that hold a place are short, and a stalled process is restarted at once.
    /// let builder = Redis::builder().concurrency_lease(Duration::from_secs(3));
    /// ```
    pub fn concurrency_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the name of connections in `CLIENT LIST`.
    pub fn client_name(mut self, name: &str) -> Self {
        self.client_name = Some(name.to_owned());
        self
    }

    /// Sets a clock that a test turns by hand. Limits, deadlines and pauses then all use it. Without one, limits use
    /// the server's clock.
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Makes the store. It returns at once. Connections are made as soon as there is a runtime.
    ///
    /// # Errors
    ///
    /// When a setting is not valid. The error names the setting.
    pub fn build(self) -> Result<Redis, ConfigError> {
        self.check()?;
        let naming = Naming::new(&self.prefix)?;
        let naming = match &self.secret {
            Some(secret) => naming.secret(secret),
            None => naming,
        };
        let clock = self.clock.as_ref().map(Clock::from).unwrap_or_default();
        let counters = Arc::new(Counters::new(&clock));
        let epochs = Arc::default();
        let refusals = Refusals::new(self.remembered, &clock, &epochs);
        let runtime = Arc::new(Runtime::new(clock));
        let found = address::resolve(&self.topology, self.url.as_deref(), &self.certificates)?;
        let connect = ConnectSettings {
            timeout: self.connect_timeout,
            backoff: self.reconnect,
            client_name: self.client_name.as_deref().map(Arc::from),
            resp3: found.resp3,
            silence: self.background.1,
            #[cfg(feature = "tls")]
            tls: found.tls,
        };
        let context = NodeContext {
            runtime: Arc::clone(&runtime),
            counters: Arc::clone(&counters),
            epochs,
            connect,
            breaker: self.breaker,
        };
        let route = match found.servers {
            address::Servers::One(target) => Route::One(Node::new(*target, context)),
            address::Servers::Cluster(seeds) => Route::Cluster(Cluster::new(seeds, context)),
        };
        let (most, grace) = self.background;
        if runtime.handle().is_some() {
            route.start();
        }
        Ok(Redis(Arc::new(Shared {
            naming,
            route,
            runtime,
            counters,
            background: Background::new(most),
            refusals,
            places: Arc::new(Places::new(self.lease)),
            deadline: self.deadline,
            grace,
            backoff: self.reconnect,
        })))
    }
}

fn owned<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Vec<String> {
    urls.into_iter().map(|url| url.as_ref().to_owned()).collect()
}

/// The bounds of leases of places. Shorter ones would be renewed all the time. With longer ones, sums with a time would
/// not be exact in a double.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

impl RedisBuilder {
    fn check(&self) -> Result<(), ConfigError> {
        let times = [
            ("deadline", self.deadline),
            ("connect timeout", self.connect_timeout),
            ("first pause before reconnecting", self.reconnect.first),
            ("first pause of the breaker", self.breaker.backoff.first),
        ];
        for (name, time) in times {
            if time.is_zero() {
                return Err(ConfigError::new(format!("the {name} is zero")));
            }
        }
        if !(SHORTEST..=LONGEST).contains(&self.lease) {
            let lease = self.lease;
            return Err(ConfigError::new(format!(
                "the concurrency lease is {lease:?}, but must be from {SHORTEST:?} to {LONGEST:?}"
            )));
        }
        for (name, backoff) in
            [("reconnecting", self.reconnect), ("the breaker", self.breaker.backoff)]
        {
            if backoff.longest < backoff.first {
                let (first, longest) = (backoff.first, backoff.longest);
                return Err(ConfigError::new(format!(
                    "the longest pause of {name}, {longest:?}, is shorter than the first, {first:?}"
                )));
            }
        }
        let name = self.client_name.as_deref().unwrap_or_default();
        if name.chars().any(|sign| !sign.is_ascii_graphic()) {
            return Err(ConfigError::new(format!(
                "the client name {name:?} contains a space or a character that is not printable ASCII"
            )));
        }
        Ok(())
    }
}
