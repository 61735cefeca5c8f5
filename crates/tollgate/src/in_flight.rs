use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tollgate_core::{InFlight, InFlightGuard};
use tower::{Layer, Service};

/// A tower layer that counts what is under way, for limits that give way while that is little.
///
/// A request counts from the call until its response is there, or its future is dropped, as happens
/// when the client has gone; a body that is sent afterwards does not count. Nothing is refused, and any
/// request, response and error pass.
///
/// ```
/// use http::{Request, Response};
/// use tollgate::{InFlight, InFlightLayer, Ip, Limit, RateLimitLayer, when};
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
/// # request.extensions_mut().insert(tollgate::Peer([192, 0, 2, 1].into()));
/// # let response = service.ready().await.unwrap().call(request).await.unwrap();
/// # assert_eq!(response.body(), "1");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct InFlightLayer {
    load: InFlight,
}

impl InFlightLayer {
    /// Counts in `load`, and in its clones.
    pub fn new(load: InFlight) -> Self {
        Self { load }
    }
}

impl<S> Layer<S> for InFlightLayer {
    type Service = InFlightService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        InFlightService { inner, load: self.load.clone() }
    }
}

/// A service behind an [`InFlightLayer`].
#[derive(Debug, Clone)]
pub struct InFlightService<S> {
    inner: S,
    load: InFlight,
}

impl<S: Service<R>, R> Service<R> for InFlightService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: R) -> Self::Future {
        // Before the call: a service may do its work within it.
        let guard = self.load.enter();
        InFlightFuture { future: self.inner.call(request), guard: Some(guard) }
    }
}

pin_project! {
    /// The response of an [`InFlightService`].
    #[derive(Debug)]
    pub struct InFlightFuture<F> {
        #[pin]
        future: F,
        guard: Option<InFlightGuard>,
    }
}

impl<F: Future> Future for InFlightFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let response = this.future.poll(cx);
        if response.is_ready() {
            // Not when the future is dropped: some are kept for longer than they are needed.
            *this.guard = None;
        }
        response
    }
}
