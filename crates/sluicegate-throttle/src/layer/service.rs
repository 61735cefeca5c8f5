use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use sluicegate::adapter::{Framework, HttpView, Plain};
use tower_layer::Layer;
use tower_service::Service;

use super::body::Body;
use super::future::ResponseFuture;
use super::refusal::Respond;
use super::requests::{Describe, Requests};
use super::settings::{HoldUntil, Settings};
use super::shared::{Admission, Shared};
use crate::scheduler::Shed;

/// A tower layer that lets requests through as a [`Throttle`](super::Throttle) starts them.
///
/// Its own `poll_ready` is always ready: the service inside is asked when a request has left the queue, and the body of
/// a request is not read before. A request that is dropped while it waits frees its place at once. The layer needs
/// tokio where the capacity is a rate.
#[must_use]
pub struct ThrottleLayer<R = Requests, W = Plain> {
    pub(super) settings: Settings<R>,
    framework: PhantomData<fn() -> W>,
}

impl<R, W> ThrottleLayer<R, W> {
    pub(super) fn new(shared: Arc<Shared>, requests: R) -> Self {
        let hold_until = HoldUntil::Body;
        let settings = Settings { shared, requests, respond: Respond::problem(), hold_until };
        Self { settings, framework: PhantomData }
    }

    fn map<Q>(self, change: impl FnOnce(R) -> Q) -> ThrottleLayer<Q, W> {
        let Settings { shared, requests, respond, hold_until } = self.settings;
        let settings = Settings { shared, requests: change(requests), respond, hold_until };
        ThrottleLayer { settings, framework: PhantomData }
    }

    /// Makes the response of requests that are shed: a redirect, a page of your own. `Retry-After` (but on redirects)
    /// and `Cache-Control: no-store` are added where it does not have them.
    pub fn respond_with(
        mut self,
        respond: impl Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.settings.respond = Respond::with(respond);
        self
    }

    /// Until when a request counts as running; until its body has ended by default.
    pub fn hold_until(mut self, hold_until: HoldUntil) -> Self {
        self.settings.hold_until = hold_until;
        self
    }
}

impl<C, P, F, D, X, W> ThrottleLayer<Requests<C, P, F, D, X>, W> {
    /// How critical each request is: a [`Class`](crate::Class), [`class_when`](super::class_when),
    /// [`ClassHeader`](super::ClassHeader) or [`class_fn`](super::class_fn). By default, all are of the lowest class.
    pub fn criticality<C2>(self, class: C2) -> ThrottleLayer<Requests<C2, P, F, D, X>, W> {
        self.map(|Requests { predict_by, fair_by, deadline, exempt, seed, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            seed,
        })
    }

    /// Predicts the cost of a request by those with the same key; by method and route by default. Use a key that
    /// clients cannot choose freely. Requests without the key take the mean of their class.
    pub fn predict_by<P2>(self, predict_by: P2) -> ThrottleLayer<Requests<C, P2, F, D, X>, W> {
        self.map(|Requests { class, fair_by, deadline, exempt, seed, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            seed,
        })
    }

    /// Serves requests of one class fairly between the values of this key, such as the customer.
    pub fn fair_by<F2>(self, fair_by: F2) -> ThrottleLayer<Requests<C, P, F2, D, X>, W> {
        self.map(|Requests { class, predict_by, deadline, exempt, seed, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            seed,
        })
    }

    /// Sheds requests that cannot be finished in time: a [`Duration`](std::time::Duration),
    /// [`DeadlineHeader`](super::DeadlineHeader) or [`GrpcTimeout`](super::GrpcTimeout).
    pub fn deadline<D2>(self, deadline: D2) -> ThrottleLayer<Requests<C, P, F, D2, X>, W> {
        self.map(|Requests { class, predict_by, fair_by, exempt, seed, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            seed,
        })
    }

    /// Lets requests for which this condition surely holds pass at once and uncounted, such as health checks.
    pub fn exempt<X2>(self, exempt: X2) -> ThrottleLayer<Requests<C, P, F, D, X2>, W> {
        self.map(|Requests { class, predict_by, fair_by, deadline, seed, .. }| Requests {
            class,
            predict_by,
            fair_by,
            deadline,
            exempt,
            seed,
        })
    }
}

impl<I, R: Clone, W> Layer<I> for ThrottleLayer<R, W> {
    type Service = ThrottleService<I, R, W>;

    fn layer(&self, inner: I) -> Self::Service {
        ThrottleService { inner, settings: Arc::new(self.settings.clone()), framework: PhantomData }
    }
}

/// A service behind a [`ThrottleLayer`].
pub struct ThrottleService<I, R = Requests, W = Plain> {
    inner: I,
    settings: Arc<Settings<R>>,
    framework: PhantomData<fn() -> W>,
}

impl<I, R, W, B, ResBody> Service<Request<B>> for ThrottleService<I, R, W>
where
    I: Service<Request<B>, Response = Response<ResBody>> + Clone,
    R: for<'a> Describe<HttpView<'a, B, W>>,
    W: Framework,
    ResBody: http_body::Body,
{
    type Response = Response<Body<ResBody>>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Settings { shared, requests, .. } = &*self.settings;
        let described = requests.describe(&HttpView::new(&request), &shared.classes);
        let admission = described.map(|described| shared.admit(&described));
        let settings = || Arc::clone(&self.settings);
        match admission {
            None => ResponseFuture::start(self.inner.clone(), request, settings(), None),
            Some(Admission::Start(in_service)) => {
                let in_service = Some(in_service);
                ResponseFuture::start(self.inner.clone(), request, settings(), in_service)
            }
            Some(Admission::Wait(place)) => {
                ResponseFuture::wait(self.inner.clone(), request, settings(), place)
            }
            Some(Admission::Shed(shed)) => {
                let (head, _) = request.into_parts();
                ResponseFuture::shed(self.settings.respond.response(&shed, &head))
            }
        }
    }
}

impl<I: Clone, R, W> Clone for ThrottleService<I, R, W> {
    fn clone(&self) -> Self {
        let (inner, settings) = (self.inner.clone(), Arc::clone(&self.settings));
        Self { inner, settings, framework: PhantomData }
    }
}

impl<R: Clone, W> Clone for ThrottleLayer<R, W> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), framework: PhantomData }
    }
}

impl<R: fmt::Debug, W> fmt::Debug for ThrottleLayer<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer").field("requests", &self.settings.requests).finish()
    }
}

impl<I: fmt::Debug, R, W> fmt::Debug for ThrottleService<I, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleService").field("inner", &self.inner).finish()
    }
}
