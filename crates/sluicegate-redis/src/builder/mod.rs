//! What a store is made of.

mod check;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::clock::Clock;

use crate::config_error::ConfigError;
use crate::exchange::background::Background;
use crate::exchange::shared::Shared;
use crate::observe::counts::Counters;
use crate::observe::report;
use crate::places::Places;
use crate::refusals::Refusals;
use crate::rows::Naming;
use crate::runtime::Runtime;
use crate::store::Redis;
use crate::wire::address::{self, Topology};
use crate::wire::backoff::Backoff;
use crate::wire::breaker::BreakerSettings;
use crate::wire::certificates::Certificates;
use crate::wire::cluster::Cluster;
use crate::wire::node::{ConnectSettings, Node, NodeContext};
use crate::wire::route::Route;

/// Makes a [`Redis`] to order.
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

    /// The server: `redis://user:password@host:port/database`, `rediss://…` for TLS (feature `tls`),
    /// `redis+unix:///path?db=2&user=…&pass=…` for a socket. `?protocol=resp2` keeps to the older protocol,
    /// which is otherwise spoken with servers that know no other.
    pub fn url(mut self, url: &str) -> Self {
        self.url = Some(url.to_owned());
        self
    }

    /// The cluster that the servers at `urls` belong to: some of its nodes, to ask for the others.
    pub fn cluster<U: AsRef<str>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        self.topology = Topology::Cluster(owned(urls));
        self
    }

    /// Whichever server is the master of `service` by what the sentinels at `urls` say. User, password,
    /// database and TLS of the master are those of [`url`](Self::url), if that is given; its host does not
    /// matter.
    pub fn sentinel<U: AsRef<str>>(
        mut self,
        service: &str,
        urls: impl IntoIterator<Item = U>,
    ) -> Self {
        self.topology = Topology::Sentinel { service: service.to_owned(), urls: owned(urls) };
        self
    }

    /// What the name of every row begins with: `sluicegate:`, unless told otherwise. Stores of one prefix
    /// share what is spent.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Names rows by a digest of the key that nobody can work out, or guess at, without `secret`: for keys
    /// that do not belong into another system, like addresses and API keys. All processes need the same.
    pub fn digest_keys(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Whom to trust to sign the server's certificate, in PEM, instead of whom the system trusts.
    #[cfg(feature = "tls")]
    pub fn certificate_authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.authorities = Some(pem.into());
        self
    }

    /// The certificate to show to the server, and its private key, in PEM.
    #[cfg(feature = "tls")]
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.own = Some((pem.into(), key.into()));
        self
    }

    /// How long a decision may take: 50 ms, unless told otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long one attempt to connect may take: a second, unless told otherwise. No request waits longer
    /// for it than for a decision.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long to wait from one failed attempt to connect to the next: `first`, then twice as long each
    /// time, up to `longest`, half of it left to chance. From 20 ms to 2 s, unless told otherwise.
    pub fn reconnect(mut self, first: Duration, longest: Duration) -> Self {
        self.reconnect = Backoff { first, longest };
        self
    }

    /// After how many consecutive failures a server is not asked for a while; never, if zero. And for how
    /// long: `first`, then twice as long each time it still fails, up to `longest`, half of it left to
    /// chance. After 5, for 100 ms to 2 s, unless told otherwise.
    pub fn breaker(mut self, failures: u32, first: Duration, longest: Duration) -> Self {
        self.breaker = BreakerSettings { failures, backoff: Backoff { first, longest } };
        self
    }

    /// How many questions may be under way at a time, and as many settlements, and how long each is waited for
    /// in the background: 4,096 and 30 s, unless told otherwise. A question that finds no room is not asked, and
    /// is an error of the kind [`Full`](crate::FailureKind::Full): it could not be given back if its answer came
    /// too late. A connection on which a question stays unanswered for that time is given up.
    pub fn background(mut self, most: usize, longest: Duration) -> Self {
        self.background = (most, longest);
        self
    }

    /// Remembers up to `rows` that have refused, each for no longer than `longest`, and refuses on its own
    /// until they would admit: a flood from one client costs the server a question now and then. Off, unless
    /// told otherwise. There is a row for each key and limit; it takes 68 bytes.
    ///
    /// What is answered is what the server would say by then. What is admitted,
    /// [settled](sluicegate_core::store::Store::settle) or [reset](sluicegate_core::store::Store::reset) through this store,
    /// a limit that was raised, and a new connection to a server that may have begun anew, is seen at once.
    /// What *another process* gives back or resets is seen after `longest` at the latest: a second is a good
    /// choice, and [`Duration::MAX`] looks again only when the refusal would have ended. Switch it on where
    /// floods are to be feared and that delay is not.
    ///
    /// Only buckets and windows are remembered. Always asked is for logs, and for limits of
    /// [concurrency](sluicegate_core::Limit::concurrent), with a [gap](sluicegate_core::Limit::min_gap), with a
    /// [ban](sluicegate_core::Limit::ban), or that [count refusals](sluicegate_core::Limit::count_refused); for
    /// requests that would wait; and for those that owe on several keys of a cluster.
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

    /// How long what this process holds of limits of [concurrency](sluicegate_core::Limit::concurrent) stays held
    /// after the process has died: 10 s, unless told otherwise.
    ///
    /// While it holds anything, it renews that in the background, at least twice in this time: up to 64 rows in
    /// one script, of a cluster those of one slot. It is the server's clock that counts, and processes of one
    /// limit may have leases of different lengths. A process that can not reach the server for that long, or is
    /// stopped, loses its places to others. Its requests go on, and what they give back then is nobody else's.
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

    /// What the server calls the connection, in `CLIENT LIST`.
    pub fn client_name(mut self, name: &str) -> Self {
        self.client_name = Some(name.to_owned());
        self
    }

    /// A clock that a test turns by hand, by which then everything goes: limits, deadlines, pauses. Without
    /// one, limits go by the server's own clock.
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Makes the store. It returns at once: nothing is connected to before there is a runtime.
    ///
    /// # Errors
    ///
    /// When something that was told cannot be; the error names it.
    pub fn build(self) -> Result<Redis, ConfigError> {
        self.check()?;
        let naming = Naming::new(&self.prefix).map_err(|bad| ConfigError::new(bad.to_string()))?;
        let naming = match &self.secret {
            Some(secret) => naming.secret(secret),
            None => naming,
        };
        let clock = self.clock.as_ref().map(Clock::from).unwrap_or_default();
        report::describe();
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
            background: Arc::new(Background::new(most)),
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
