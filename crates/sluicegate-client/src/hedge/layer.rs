use std::sync::Arc;

use sluicegate::clock::Clock;
use sluicegate::condition::Condition;
use sluicegate::key::Key;
use tower_layer::Layer;

use super::service::Hedge;
use super::shared::Shared;
use crate::error::ConfigError;
use crate::outgoing::{AnyKey, OutgoingView};
use crate::retry::Budget;
use crate::retry::repeat::Repeatable;
use crate::table::{MOST_ROWS, Table};

/// A layer that sends a copy of a request whose response is late, and takes the first response.
///
/// Alone, put it directly around the client that sends. With other layers, [`Outgoing::hedge`](crate::Outgoing::hedge) puts
/// it where its copies wait for their turn, too.
///
/// ```
/// use http::{Request, Response};
/// use sluicegate_client::retry::Budget;
/// use sluicegate_client::{BoxError, HedgeLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let hedge = HedgeLayer::builder()
///     .percentile(0.99) // copies of the slowest 1 % of the requests,
///     .budget(Budget::try_new(0.02, 0)?) // but of no more than 2 %
///     .build()?;
/// let mut client = ServiceBuilder::new()
///     .layer(hedge)
///     .service_fn(|_: Request<()>| async { Ok::<_, BoxError>(Response::new(())) });
/// let request = Request::get("https://api.example/").body(())?;
/// assert_eq!(client.ready().await?.call(request).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HedgeLayer(Arc<Shared>);

impl HedgeLayer {
    /// The layer with the defaults of [`HedgeBuilder`].
    pub fn new() -> Self {
        Self(Arc::new(HedgeBuilder::default().shared()))
    }

    /// A layer with settings of your own.
    pub fn builder() -> HedgeBuilder {
        HedgeBuilder::default()
    }

    /// The service of `layer`; without one, requests pass as they are.
    pub(crate) fn optional<S>(layer: Option<&Self>, inner: S) -> Hedge<S> {
        Hedge::new(inner, layer.map(|layer| layer.0.clone()))
    }
}

impl Default for HedgeLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedge<S>;

    fn layer(&self, inner: S) -> Hedge<S> {
        Hedge::new(inner, Some(self.0.clone()))
    }
}

/// The settings of a [`HedgeLayer`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct HedgeBuilder {
    percentile: f64,
    budget: Arc<Budget>,
    repeatable: Repeatable,
    key: Option<AnyKey>,
    keys: usize,
    clock: Clock,
}

impl Default for HedgeBuilder {
    fn default() -> Self {
        Self {
            percentile: 0.95,
            budget: Arc::new(Budget::of(50_000, 0)),
            repeatable: Repeatable::default(),
            key: None,
            keys: 1_000,
            clock: Clock::machine(),
        }
    }
}

impl HedgeBuilder {
    /// The part of the responses that are not late; 0.95 by default. It is measured over the last 100 to 1,000 responses,
    /// to a tenth. Before the first hundred, no response is late.
    pub const fn percentile(mut self, part: f64) -> Self {
        self.percentile = part;
        self
    }

    /// The budget, which several layers may share; a twentieth of the requests by default, without an advance.
    pub fn budget(mut self, budget: impl Into<Arc<Budget>>) -> Self {
        self.budget = budget.into();
        self
    }

    /// Also sends copies of requests for which this holds, which the program knows to do no harm when they arrive twice.
    ///
    /// Without it, there are copies of GET, HEAD, PUT, DELETE, OPTIONS and TRACE, and of requests with an
    /// `Idempotency-Key`.
    pub fn repeat_when<C>(mut self, condition: C) -> Self
    where
        C: for<'a> Condition<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.repeatable = Repeatable::when(condition);
        self
    }

    /// Measures by `key`, in addition to the origin, such as a route where some take longer than others. A request without
    /// the key is measured with its origin.
    pub fn by<K>(mut self, key: K) -> Self
    where
        K: for<'a> Key<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.key = Some(AnyKey::new(key));
        self
    }

    /// Most keys that are measured apart, about; 1,000 by default. When there are more, the one that was not used for the
    /// longest time is forgotten.
    pub const fn keys(mut self, most: usize) -> Self {
        self.keys = most;
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
    /// If the percentile is not from 0.5 to 0.999, or no key could be measured; the text says which.
    pub fn build(self) -> Result<HedgeLayer, ConfigError> {
        if !(0.5..=0.999).contains(&self.percentile) {
            let text = format!(
                "the percentile after which a response is late is from 0.5 to 0.999; {:?} was given",
                self.percentile
            );
            return Err(ConfigError::new(text));
        }
        if self.keys == 0 || self.keys > MOST_ROWS {
            let text = format!(
                "responses of 1 to 10,000,000 keys are measured; {} were asked for",
                self.keys
            );
            return Err(ConfigError::new(text));
        }
        Ok(HedgeLayer(Arc::new(self.shared())))
    }

    fn shared(self) -> Shared {
        let Self { percentile, budget, repeatable, key, keys, clock } = self;
        Shared { table: Table::new(keys), clock, key, percentile, budget, repeatable }
    }
}
