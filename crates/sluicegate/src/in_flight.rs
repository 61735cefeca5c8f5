use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use sluicegate_core::condition::{InFlight, InFlightGuard};
use tower::{Layer, Service};

use crate::body::Body;
use crate::http_limit::hold;
use crate::upgrade::Upgrade;
use crate::view::{FrameworkBody, Plain};

/// A tower layer that counts what is in flight, for limits that are more generous while the count is low.
///
/// A request counts from the call until its response's body has ended, failed or been dropped, or until
/// the connection that it upgraded has closed; if there is no response, until its future is dropped, as
/// happens when the client has gone. [`until_head`](InFlightLayerFor::until_head) leaves bodies and
/// upgraded connections out. Nothing is refused, and any request, response and error pass.
///
/// ```
/// use http::{Request, Response};
/// use sluicegate::{Ip, Limit, RateLimitLayer, when};
/// use sluicegate::condition::InFlight;
/// use sluicegate::service::InFlightLayer;
/// use tower::ServiceBuilder;
/// # use tower::{Service, ServiceExt};
///
/// let load = InFlight::below(100);
/// let elastic = when(load.clone(), Limit::per_minute(1_000).named("api"))
///     .otherwise(Limit::per_minute(100).named("api"))
///     .by(Ip::peer());
///
/// // Within the limit, so that what it refuses is not counted.
/// let service = ServiceBuilder::new()
///     .layer(RateLimitLayer::new(elastic))
///     .layer(InFlightLayer::new(load.clone()))
///     .service_fn(move |_: Request<String>| {
///         let load = load.clone();
///         async move { Ok::<_, std::convert::Infallible>(Response::new(load.count().to_string())) }
///     });
/// # let mut service = service;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let mut request = Request::new(String::new());
/// # request.extensions_mut().insert(sluicegate::adapter::Peer([192, 0, 2, 1].into()));
/// # let response = service.ready().await.unwrap().call(request).await.unwrap();
/// # assert_eq!(response.body().inner().unwrap().inner().unwrap(), "1");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub type InFlightLayer = InFlightLayerFor<Plain>;

/// [`InFlightLayer`] for a [`Framework`](crate::adapter::Framework) `W`, or [`UntilHead`].
#[must_use]
pub struct InFlightLayerFor<W> {
    load: InFlight,
    until: PhantomData<fn() -> W>,
}

impl<W> InFlightLayerFor<W> {
    /// Counts in `load`, and in its clones.
    pub fn new(load: InFlight) -> Self {
        Self { load, until: PhantomData }
    }

    /// Counts a request until its response is there, and not while the body is sent; also for services
    /// that do not speak HTTP.
    ///
    /// ```
    /// use sluicegate::condition::InFlight;
    /// use sluicegate::service::InFlightLayer;
    ///
    /// let load = InFlight::below(100);
    /// let layer = InFlightLayer::new(load.clone()).until_head();
    /// # let _ = layer;
    /// ```
    pub fn until_head(self) -> InFlightLayerFor<UntilHead> {
        InFlightLayerFor::new(self.load)
    }
}

impl<S, W> Layer<S> for InFlightLayerFor<W> {
    type Service = InFlightService<S, W>;

    fn layer(&self, inner: S) -> Self::Service {
        InFlightService { inner, layer: self.clone() }
    }
}

/// A service behind an [`InFlightLayer`].
#[derive(Debug, Clone)]
pub struct InFlightService<S, W = Plain> {
    inner: S,
    layer: InFlightLayerFor<W>,
}

impl<S, W, R> Service<R> for InFlightService<S, W>
where
    S: Service<R>,
    W: CountUntil<R, S::Response>,
{
    type Response = W::Response;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future, R, W>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: R) -> Self::Future {
        // Before the call: a service may do its work within it.
        let counted = Some(W::begin(&self.layer.load, &mut request));
        InFlightFuture { future: self.inner.call(request), counted, until: PhantomData }
    }
}

pin_project! {
    /// The response of an [`InFlightService`] to a request `Q`.
    pub struct InFlightFuture<F, Q, W = Plain> {
        #[pin]
        future: F,
        counted: Option<Counted>,
        until: PhantomData<fn(Q) -> W>,
    }
}

impl<F, Q, W, T, E> Future for InFlightFuture<F, Q, W>
where
    F: Future<Output = Result<T, E>>,
    W: CountUntil<Q, T>,
{
    type Output = Result<W::Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx));
        // Not when the future is dropped: some are kept for longer than they are needed.
        let counted = this.counted.take().expect("a future is not polled again once it is ready");
        Poll::Ready(response.map(|response| W::end(counted, response)))
    }
}

/// Until when a request `Q` counts that is answered by `T`: as it is for every
/// [`Framework`](crate::adapter::Framework), until its response has been sent, or [`UntilHead`].
pub trait CountUntil<Q, T> {
    /// What the response becomes.
    type Response;

    /// The request is called.
    fn begin(load: &InFlight, request: &mut Q) -> Counted;

    /// The response is there.
    fn end(counted: Counted, response: T) -> Self::Response;
}

/// A request that is under way.
#[derive(Debug)]
pub struct Counted {
    guard: InFlightGuard,
    upgrade: Option<Upgrade>,
}

/// Until the head of the response is there: see [`InFlightLayerFor::until_head`].
#[derive(Debug, Clone, Copy)]
pub struct UntilHead;

impl<Q, T> CountUntil<Q, T> for UntilHead {
    type Response = T;

    fn begin(load: &InFlight, _: &mut Q) -> Counted {
        Counted { guard: load.enter(), upgrade: None }
    }

    fn end(_: Counted, response: T) -> T {
        response
    }
}

impl<B, ResBody, W> CountUntil<Request<B>, Response<ResBody>> for W
where
    W: FrameworkBody<ResBody>,
{
    type Response = Response<W::Body>;

    fn begin(load: &InFlight, request: &mut Request<B>) -> Counted {
        Counted { guard: load.enter(), upgrade: Upgrade::of(request) }
    }

    fn end(counted: Counted, response: Response<ResBody>) -> Self::Response {
        let Counted { guard, upgrade } = counted;
        let guard = hold(Some(Box::new(guard)), upgrade, response.status());
        response.map(|body| W::body(Body::guarded(body, guard)))
    }
}

impl<W> Clone for InFlightLayerFor<W> {
    fn clone(&self) -> Self {
        Self::new(self.load.clone())
    }
}

impl<W> fmt::Debug for InFlightLayerFor<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLayer").field("load", &self.load).finish()
    }
}

impl<F, Q, W> fmt::Debug for InFlightFuture<F, Q, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InFlightFuture")
    }
}
