use std::sync::Arc;
use std::time::Duration;

use sluicegate::adapter::ConfigError;
use sluicegate::clock::Clock;
use sluicegate::key::Key;
use tower_layer::Layer;

use super::server::Server;
use crate::layered::Layered;
use crate::outgoing::{AnyKey, Origin, OutgoingView};
use crate::table::{MOST_ROWS, Table};

/// A layer that does not send what its server would most likely reject.
///
/// ```
/// use http::{Request, Response};
/// use sluicegate_client::{BoxError, Refused, AdaptiveThrottleLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut client =
///     ServiceBuilder::new().layer(AdaptiveThrottleLayer::new()).service_fn(|_: Request<()>| async {
///         // A server that is overloaded.
///         Ok::<_, BoxError>(Response::builder().status(503).body(())?)
///     });
/// let mut sent = 0;
/// for _ in 0..1_000 {
///     let request = Request::get("https://api.example/").body(())?;
///     match client.ready().await?.call(request).await {
///         Ok(_) => sent += 1,
///         Err(error) => assert!(Refused::find(&*error).is_some()),
///     }
/// }
/// assert!(sent < 150);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AdaptiveThrottleLayer(pub(super) Arc<Shared>);

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: AdaptiveThrottleBuilder,
    pub(super) table: Table<Server>,
}

impl Shared {
    pub(super) fn new(settings: AdaptiveThrottleBuilder) -> Self {
        Self { table: Table::new(settings.servers), settings }
    }
}

impl AdaptiveThrottleLayer {
    /// The layer with the defaults of [`AdaptiveThrottleBuilder`].
    pub fn new() -> Self {
        Self(Arc::new(Shared::new(AdaptiveThrottleBuilder::default())))
    }

    /// A layer with settings of your own.
    pub fn builder() -> AdaptiveThrottleBuilder {
        AdaptiveThrottleBuilder::default()
    }

    /// Servers that are known at the moment.
    pub fn servers(&self) -> usize {
        self.0.table.len()
    }
}

impl Default for AdaptiveThrottleLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for AdaptiveThrottleLayer {
    type Service = Layered<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { inner, layer: self.clone() }
    }
}

/// The settings of a [`AdaptiveThrottleLayer`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct AdaptiveThrottleBuilder {
    pub(super) key: AnyKey,
    pub(super) k: f64,
    pub(super) from: u32,
    pub(super) most: f64,
    pub(super) window: Duration,
    pub(super) servers: usize,
    pub(super) clock: Clock,
}

impl Default for AdaptiveThrottleBuilder {
    fn default() -> Self {
        Self {
            key: AnyKey::new(Origin),
            k: 2.0,
            from: 20,
            most: 0.95,
            window: Duration::from_secs(120),
            servers: 10_000,
            clock: Clock::machine(),
        }
    }
}

impl AdaptiveThrottleBuilder {
    /// Counts requests apart by `key`; by [`Origin`] by default.
    pub fn by<K>(mut self, key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.key = AnyKey::new(key);
        self
    }

    /// The multiplier: a server that accepts fewer than one of `k` requests is sent fewer. 2 by default. A smaller one
    /// rejects earlier; a larger one lets the server see more, so the client notices sooner that it has recovered.
    pub const fn k(mut self, k: f64) -> Self {
        self.k = k;
        self
    }

    /// Rejects nothing before so many requests in the window; 20 by default. With 0, the second request after a failure
    /// is rejected with a probability of a half.
    pub const fn from(mut self, requests: u32) -> Self {
        self.from = requests;
        self
    }

    /// The largest share of requests that is rejected; 0.95 by default. One request in a second is sent in any case.
    pub const fn at_most(mut self, share: f64) -> Self {
        self.most = share;
        self
    }

    /// How far back requests are counted; two minutes by default.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Most servers that are remembered, about; 10,000 by default.
    pub const fn servers(mut self, most: usize) -> Self {
        self.servers = most;
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
    /// If a number makes no sense; the text says which.
    pub fn build(self) -> Result<AdaptiveThrottleLayer, ConfigError> {
        if !(1.0..=1_000.0).contains(&self.k) {
            let text = format!("the multiplier k is from 1 to 1000; {:?} was given", self.k);
            return Err(ConfigError::new(text));
        }
        if !(0.0..=1.0).contains(&self.most) {
            let text =
                format!("the largest share to reject is from 0 to 1; {:?} was given", self.most);
            return Err(ConfigError::new(text));
        }
        if self.window < Duration::from_secs(1) || self.window > Duration::from_secs(3_600) {
            let text =
                format!("the window is from a second to an hour; {:?} was given", self.window);
            return Err(ConfigError::new(text));
        }
        if self.servers == 0 || self.servers > MOST_ROWS {
            let text =
                format!("1 to 10,000,000 servers are remembered; {} were asked for", self.servers);
            return Err(ConfigError::new(text));
        }
        Ok(AdaptiveThrottleLayer(Arc::new(Shared::new(self))))
    }
}
