use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use sluicegate::adapter::ConfigError;
use sluicegate::clock::Clock;
use sluicegate::key::Key;
use tower_layer::Layer;

use super::gate::Reserve;
use super::line::LineRow;
use crate::layered::Layered;
use crate::outgoing::{AnyKey, OutgoingView};
use crate::pace::Patience;
use crate::table::{MOST_ROWS, Table};

/// A layer in which requests wait until a [smooth method](super) lets them go.
///
/// Requests leave in the order in which they came. One that would wait for too long fails with [`Refused`](crate::Refused),
/// and is not sent. Times are reserved up to 100 ms ahead, so a caller that leaves makes room for those behind it.
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate_client::outgoing::Origin;
/// use sluicegate_client::pace::Patience;
/// use sluicegate_client::smooth::Stored;
/// use sluicegate_client::{BoxError, Refused, SmoothLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// // One in ten seconds to each server.
/// let layer = SmoothLayer::builder(Stored::bursty(0.1, Duration::ZERO)?)
///     .by(Origin)
///     .patience(Patience::AtMost(Duration::from_secs(1)))
///     .build()?;
/// let mut client = ServiceBuilder::new()
///     .layer(layer)
///     .service_fn(|_: Request<()>| async { Ok::<_, BoxError>(Response::new(())) });
/// let request = |uri: &str| Request::get(uri).body(()).unwrap();
///
/// client.ready().await?.call(request("https://api.example/a")).await?;
/// client.ready().await?.call(request("https://other.example/")).await?;
/// let error = client.ready().await?.call(request("https://api.example/b")).await.unwrap_err();
/// assert!(Refused::find(&*error).unwrap().retry_after() > Some(Duration::from_secs(9)));
/// # Ok(())
/// # }
/// ```
pub struct SmoothLayer<R>(pub(super) Arc<Shared<R>>);

/// What all services of a layer share.
pub(super) struct Shared<R> {
    pub(super) settings: SmoothBuilder<R>,
    pub(super) table: Table<LineRow<R>>,
    pub(super) waiting: AtomicUsize,
}

impl<R> Shared<R> {
    pub(super) fn new(settings: SmoothBuilder<R>) -> Self {
        Self { table: Table::new(settings.keys), waiting: AtomicUsize::new(0), settings }
    }
}

impl<R: Reserve + Clone> SmoothLayer<R> {
    /// All requests wait for `method` until they may go.
    pub fn new(method: R) -> Self {
        Self(Arc::new(Shared::new(Self::builder(method))))
    }

    /// A layer with settings of your own.
    pub fn builder(method: R) -> SmoothBuilder<R> {
        SmoothBuilder {
            method,
            key: None,
            patience: Patience::UntilAdmitted,
            most_waiting: 10_000,
            keys: 10_000,
            cost: |_| 1,
            clock: Clock::machine(),
        }
    }
}

impl<R> Clone for SmoothLayer<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R> fmt::Debug for SmoothLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmoothLayer")
    }
}

impl<S, R> Layer<S> for SmoothLayer<R> {
    type Service = Layered<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { inner, layer: self.clone() }
    }
}

/// The settings of a [`SmoothLayer`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct SmoothBuilder<R> {
    pub(super) method: R,
    pub(super) key: Option<AnyKey>,
    pub(super) patience: Patience,
    pub(super) most_waiting: usize,
    pub(super) keys: usize,
    pub(super) cost: fn(&OutgoingView<'_>) -> u32,
    pub(super) clock: Clock,
}

impl<R: Reserve + Clone> SmoothBuilder<R> {
    /// Each key has a copy of the method of its own. Without this, all requests share one. A request without the key is
    /// refused.
    pub fn by<K>(mut self, key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.key = Some(AnyKey::new(key));
        self
    }

    /// How long requests wait; until they may go by default. The timeout of a request shortens it.
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Most requests that wait at a time, 10,000 by default. Further ones are refused if they have to wait.
    pub const fn most_waiting(mut self, most: usize) -> Self {
        self.most_waiting = most;
        self
    }

    /// Most keys that are remembered, about; 10,000 by default. When there are more, the one that was not used for the
    /// longest time is forgotten.
    pub const fn keys(mut self, most: usize) -> Self {
        self.keys = most;
        self
    }

    /// How many permits a request takes; one by default.
    pub const fn cost(mut self, cost: fn(&OutgoingView<'_>) -> u32) -> Self {
        self.cost = cost;
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
    /// If no key could be remembered.
    pub fn build(self) -> Result<SmoothLayer<R>, ConfigError> {
        if self.keys == 0 || self.keys > MOST_ROWS {
            let text = format!("1 to 10,000,000 keys are remembered; {} were asked for", self.keys);
            return Err(ConfigError::new(text));
        }
        Ok(SmoothLayer(Arc::new(Shared::new(self))))
    }
}
