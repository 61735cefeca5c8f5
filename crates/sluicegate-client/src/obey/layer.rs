use std::sync::Arc;
use std::time::Duration;

use sluicegate::adapter::ConfigError;
use sluicegate::clock::Clock;
use sluicegate::key::Key;
use tower_layer::Layer;

use super::server_row::ServerRow;
use super::standing::Rules;
use crate::layered::Layered;
use crate::outgoing::{AnyKey, OutgoingView};
use crate::table::{MOST_ROWS, Table};

/// A layer that keeps requests back while their server asks for that.
///
/// What is learned is kept for each origin; clones of the layer, and all services that it wraps, share it. A request
/// that would wait for longer than [`wait`](ObeyBuilder::wait) fails with [`Refused`](crate::Refused).
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate_client::{BoxError, ObeyLayer, Refused};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let obey = ObeyLayer::builder().wait(Duration::from_secs(5)).build()?;
/// let mut client = ServiceBuilder::new().layer(obey).service_fn(|_: Request<()>| async {
///     // A server that is busy for a minute.
///     Ok::<_, BoxError>(Response::builder().status(503).header("retry-after", "60").body(())?)
/// });
/// let request = || Request::get("https://api.example/").body(()).unwrap();
///
/// assert_eq!(client.ready().await?.call(request()).await?.status(), 503);
/// // The next request does not leave.
/// let error = client.ready().await?.call(request()).await.unwrap_err();
/// assert!(Refused::find(&*error).unwrap().retry_after() >= Some(Duration::from_secs(59)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ObeyLayer(pub(super) Arc<Shared>);

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: ObeyBuilder,
    pub(super) table: Table<ServerRow>,
    pub(super) rules: Rules,
}

impl Shared {
    pub(super) fn new(settings: ObeyBuilder, rules: Rules) -> Self {
        Self { table: Table::new(settings.servers), settings, rules }
    }
}

impl ObeyLayer {
    /// The layer with the defaults of [`ObeyBuilder`].
    pub fn new() -> Self {
        Self(Arc::new(Shared::new(ObeyBuilder::default(), Rules::default())))
    }

    /// A layer with settings of your own.
    pub fn builder() -> ObeyBuilder {
        ObeyBuilder::default()
    }

    /// Servers that are known at the moment.
    pub fn servers(&self) -> usize {
        self.0.table.len()
    }
}

impl Default for ObeyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for ObeyLayer {
    type Service = Layered<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { inner, layer: self.clone() }
    }
}

/// The settings of an [`ObeyLayer`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct ObeyBuilder {
    pub(super) key: Option<AnyKey>,
    pub(super) wait: Duration,
    pub(super) waiting: usize,
    pub(super) servers: usize,
    longest: Duration,
    probe: Duration,
    pub(super) clock: Clock,
}

impl Default for ObeyBuilder {
    fn default() -> Self {
        Self {
            key: None,
            wait: Duration::from_secs(30),
            waiting: 1_024,
            servers: 10_000,
            longest: Duration::from_secs(3_600),
            probe: Duration::from_secs(10),
            clock: Clock::machine(),
        }
    }
}

impl ObeyBuilder {
    /// Keeps what is learned apart by `key`, in addition to the origin.
    ///
    /// For servers that limit each API key, it is the header with the key. Requests without the key share what is
    /// learned from one another.
    pub fn by<K>(mut self, key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.key = Some(AnyKey::new(key));
        self
    }

    /// The longest that a request waits before it is sent; 30 seconds by default. With zero, no request waits. A
    /// request that is known to wait for longer fails at once.
    pub const fn wait(mut self, longest: Duration) -> Self {
        self.wait = longest;
        self
    }

    /// Most requests that wait for one server; 1,024 by default.
    pub const fn waiting(mut self, most: usize) -> Self {
        self.waiting = most;
        self
    }

    /// Most servers that are remembered, about; 10,000 by default. When more are busy, the one that holds requests
    /// back for the shortest time is forgotten.
    pub const fn servers(mut self, most: usize) -> Self {
        self.servers = most;
        self
    }

    /// The longest wait that a server may demand; an hour by default.
    pub const fn believe(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// How long the others wait for the first request after a wait; 10 seconds by default.
    pub const fn probe(mut self, longest: Duration) -> Self {
        self.probe = longest;
        self
    }

    /// The clock to go by, for tests.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// If no server could be remembered, or a time makes no sense; the text says which.
    pub fn build(self) -> Result<ObeyLayer, ConfigError> {
        const DAY: Duration = Duration::from_secs(86_400);
        let rules = Rules::try_new(self.longest, self.probe)?;
        if self.servers == 0 || self.servers > MOST_ROWS {
            let text =
                format!("1 to 10,000,000 servers are remembered; {} were asked for", self.servers);
            return Err(ConfigError::new(text));
        }
        if self.wait > DAY {
            let text = format!("a request waits for at most a day; {:?} was given", self.wait);
            return Err(ConfigError::new(text));
        }
        Ok(ObeyLayer(Arc::new(Shared::new(self, rules))))
    }
}
