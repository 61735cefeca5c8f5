use std::sync::Arc;
use std::time::Duration;

use sluicegate::adapter::ConfigError;
use sluicegate::adapter::breaker::Backoff;
use sluicegate::clock::Clock;
use sluicegate::condition::Condition;
use tower_layer::Layer;

use super::attempts::Shared;
use super::budget::{Budget, Tokens};
use super::decide::{AttemptResult, BACKOFF, Bounds, Repeatable};
use crate::layered::Layered;
use crate::outgoing::OutgoingView;

/// A layer that sends requests again after failures that may pass, within a budget.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use http::{Request, Response};
/// use sluicegate_client::{BoxError, RetryLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// static CALLS: AtomicU32 = AtomicU32::new(0);
/// let mut client =
///     ServiceBuilder::new().layer(RetryLayer::new()).service_fn(|_: Request<()>| async {
///         let status = if CALLS.fetch_add(1, Relaxed) == 0 { 503 } else { 200 };
///         Ok::<_, BoxError>(Response::builder().status(status).body(())?)
///     });
/// let request = Request::get("https://api.example/").body(())?;
/// assert_eq!(client.ready().await?.call(request).await?.status(), 200);
/// assert_eq!(CALLS.load(Relaxed), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RetryLayer(pub(super) Arc<Shared>);

impl RetryLayer {
    /// The layer with the defaults of [`RetryBuilder`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A layer with settings of your own.
    pub fn builder() -> RetryBuilder {
        RetryBuilder::default()
    }
}

impl Default for RetryLayer {
    fn default() -> Self {
        Self(Arc::new(RetryBuilder::default().0))
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Layered<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Layered { inner, layer: self.clone() }
    }
}

/// The settings of a [`RetryLayer`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct RetryBuilder(Shared);

impl Default for RetryBuilder {
    fn default() -> Self {
        Self(Shared {
            budget: Arc::default(),
            tokens: None,
            bounds: Bounds { attempts: 3, backoff: BACKOFF, longest: Duration::from_secs(30) },
            repeatable: Repeatable::default(),
            retry_on: |outcome| outcome.is_passing(),
            clock: Clock::machine(),
        })
    }
}

impl RetryBuilder {
    /// Most attempts for a request, the first included; 3 by default, 10 at most.
    pub const fn attempts(mut self, most: u32) -> Self {
        self.0.bounds.attempts = most;
        self
    }

    /// Random waits up to `base` after the first attempt, up to twice that after the second, and never above `most`;
    /// 100 ms and 10 s by default.
    pub const fn backoff(mut self, base: Duration, most: Duration) -> Self {
        self.0.bounds.backoff = Backoff { first: base, longest: most };
        self
    }

    /// The longest `Retry-After` that is waited for; 30 seconds by default. After a longer one, the caller gets the
    /// response.
    pub const fn longest_wait(mut self, longest: Duration) -> Self {
        self.0.bounds.longest = longest;
        self
    }

    /// The budget, which several layers may share; a tenth of the requests by default.
    pub fn budget(mut self, budget: impl Into<Arc<Budget>>) -> Self {
        self.0.budget = budget.into();
        self
    }

    /// Retries no more while too many requests fail, by gRPC's retry throttling, in addition to the budget. Several layers
    /// may share it.
    pub fn throttling(mut self, tokens: impl Into<Arc<Tokens>>) -> Self {
        self.0.tokens = Some(tokens.into());
        self
    }

    /// Also repeats requests for which this holds, which the program knows to do no harm when they arrive twice.
    ///
    /// Without it, these are repeated: GET, HEAD, PUT, DELETE, OPTIONS and TRACE, and requests with an
    /// `Idempotency-Key`. Calls of gRPC are POST: name the methods that may be repeated, as
    /// `Path.matches("/shop.Catalog/{*method}")`.
    pub fn repeat_when<C>(mut self, condition: C) -> Self
    where
        C: for<'a> Condition<OutgoingView<'a>> + Send + Sync + 'static,
    {
        self.0.repeatable = Repeatable::when(condition);
        self
    }

    /// After which outcomes a request is repeated; [`AttemptResult::is_passing`] by default.
    pub const fn retry_on(mut self, passing: fn(&AttemptResult<'_>) -> bool) -> Self {
        self.0.retry_on = passing;
        self
    }

    /// The clock to go by, for tests.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.0.clock = clock.into();
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// If there is no attempt or more than 10, or a wait makes no sense; the text says which.
    pub fn build(self) -> Result<RetryLayer, ConfigError> {
        self.0.bounds.check()?;
        Ok(RetryLayer(Arc::new(self.0)))
    }
}
