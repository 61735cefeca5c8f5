use http_body::Body;
use tower::layer::util::Identity;
use tower_layer::Layer;

use crate::adaptive_throttle::AdaptiveThrottleLayer;
use crate::layered::Layered;
use crate::obey::ObeyLayer;
use crate::propagate::PropagateLayer;
use crate::replay::{ReplayBody, ReplayLayer};
use crate::retry::RetryLayer;

/// The layers of a good client, in the right order.
///
/// ```text
/// request ─► retry ─► throttle ─► pace ─► obey ─► propagate ─► the client that sends
///            │        │           │       │       └ writes criticality and deadline (if asked to)
///            │        │           │       └ waits while the server asks for that, by origin
///            │        │           └ waits for its turn by a limit of your own (if there is one)
///            │        └ does not send what the server would most likely reject
///            └ sends again what may be repeated, within a budget
/// ```
///
/// - Retrying is outermost, so that each attempt passes all that limits requests.
/// - The throttle comes before what waits: what it rejects does not wait first.
/// - Pacing comes before obeying, so that a request that has its turn is not sent against the server's word. Obeying is
///   next to the client, where it sees every response, also those to attempts that failed.
/// - A `tower::buffer::Buffer` goes around all of them, or between them and the client. Between two layers it hides how long
///   the inner one may wait: a retry may then sleep for longer than [`ObeyBuilder::wait`](crate::obey::ObeyBuilder::wait),
///   and requests that wait further in look to the throttle as if they had been sent.
/// - Likewise a layer that follows redirects: around all of them, each hop has the waits of a call, and is obeyed and counted by its
///   own origin.
/// - A limit of places, such as `tower::limit::ConcurrencyLimit`, goes between them and the client. A request that waits in these
///   layers holds no place meanwhile.
///
/// ```
/// use http::{Request, Response};
/// use sluicegate_client::{BoxError, Outgoing};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let mut client = ServiceBuilder::new().layer(Outgoing::new()).service_fn(|_: Request<()>| async {
///     Ok::<_, BoxError>(Response::new(()))
/// });
/// let request = Request::get("https://api.example/").body(())?;
/// assert_eq!(client.ready().await?.call(request).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
///
/// With a limit of your own:
///
/// ```
/// use sluicegate::Limit;
/// use sluicegate_client::outgoing::Origin;
/// use sluicegate_client::pace::Pacer;
/// use sluicegate_client::{Outgoing, PaceLayer};
///
/// let layers = Outgoing::new().pace(PaceLayer::new(Origin, Pacer::new(Limit::per_second(50))));
/// # let _ = layers;
/// ```
///
/// The same in parts, for other settings or another order:
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use sluicegate_client::{BoxError, ObeyLayer, RetryLayer, AdaptiveThrottleLayer};
/// use tower::ServiceBuilder;
///
/// # fn main() -> Result<(), BoxError> {
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::builder().attempts(2).build()?)
///     .layer(AdaptiveThrottleLayer::new())
///     .layer(ObeyLayer::builder().wait(Duration::from_secs(2)).build()?)
///     .service_fn(|_: Request<()>| async { Ok::<_, BoxError>(Response::new(())) });
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct Outgoing<P = Identity> {
    retry: RetryLayer,
    once: Once<P>,
}

/// The layers of [`Outgoing`] without retries; made by [`Outgoing::once`].
#[derive(Debug, Clone, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct Once<P = Identity> {
    throttle: AdaptiveThrottleLayer,
    pace: P,
    obey: ObeyLayer,
    propagate: Option<PropagateLayer>,
}

impl Outgoing {
    /// The layers with their defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<P> Outgoing<P> {
    /// Other settings for retries.
    pub fn retry(mut self, retry: RetryLayer) -> Self {
        self.retry = retry;
        self
    }

    /// Other settings for the throttle.
    pub fn throttle(mut self, throttle: AdaptiveThrottleLayer) -> Self {
        self.once.throttle = throttle;
        self
    }

    /// A layer that lets requests wait for a limit of your own: a [`PaceLayer`](crate::PaceLayer), a
    /// [`SmoothLayer`](crate::SmoothLayer), or both.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate_client::smooth::Stored;
    /// use sluicegate_client::{Outgoing, SmoothLayer};
    ///
    /// // Up to 50 a second, after a warm-up of ten seconds.
    /// let warming_up = Stored::warming_up(50.0, Duration::from_secs(10), 3.0)?;
    /// let layers = Outgoing::new().pace(SmoothLayer::new(warming_up));
    /// # let _ = layers;
    /// # Ok::<(), sluicegate_client::ConfigError>(())
    /// ```
    pub fn pace<L>(self, pace: L) -> Outgoing<L> {
        let Once { throttle, obey, propagate, .. } = self.once;
        let once = Once { throttle, pace, obey, propagate };
        Outgoing { retry: self.retry, once }
    }

    /// Other settings for what servers ask for.
    pub fn obey(mut self, obey: ObeyLayer) -> Self {
        self.once.obey = obey;
        self
    }

    /// Writes criticality and deadline into requests; for clients that call services of your own.
    pub fn propagate(mut self, propagate: PropagateLayer) -> Self {
        self.once.propagate = Some(propagate);
        self
    }

    /// Like this stack, but for requests whose body can be read only once, such as those of tonic, where `into` is
    /// `tonic::body::Body::new`. Bodies up to 64 KiB are kept; see [`ReplayLayer`].
    pub fn replay<F, B>(self, into: F) -> ReplayLayer<Self, F>
    where
        F: Fn(ReplayBody<B>) -> B,
        B: Body,
    {
        ReplayLayer::new(self, into)
    }

    /// Like this stack, but without retries, for requests that cannot be copied.
    pub fn once(self) -> Once<P> {
        self.once
    }
}

impl<S, P> Layer<S> for Outgoing<P>
where
    P: Layer<Layered<Layered<S, Option<PropagateLayer>>, ObeyLayer>>,
{
    type Service = Layered<Layered<P::Service, AdaptiveThrottleLayer>, RetryLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        self.retry.layer(self.once.layer(inner))
    }
}

impl<S, P> Layer<S> for Once<P>
where
    P: Layer<Layered<Layered<S, Option<PropagateLayer>>, ObeyLayer>>,
{
    type Service = Layered<P::Service, AdaptiveThrottleLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        let propagate = Layered { inner, layer: self.propagate.clone() };
        self.throttle.layer(self.pace.layer(self.obey.layer(propagate)))
    }
}
