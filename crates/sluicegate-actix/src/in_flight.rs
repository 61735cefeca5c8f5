use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::Error;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::Hold;
use sluicegate_core::condition::{InFlight, InFlightGuard};

use crate::body::Body;

/// A middleware that counts what is in flight, for limits that are more generous while the count is low.
///
/// A request counts from the call until its response's body has ended, failed or been dropped; if there
/// is no response, until its future is dropped. A connection that is upgraded (a WebSocket) is the body
/// of its response. Nothing is refused.
///
/// ```
/// use actix_web::App;
/// use sluicegate_actix::{Ip, Limit, RateLimit, when};
/// use sluicegate_actix::condition::InFlight;
/// use sluicegate_actix::service::InFlightMiddleware;
/// # use actix_web::{test, web};
///
/// // One for all workers: made outside of the closure that makes the app, like a store.
/// let load = InFlight::below(100);
/// let elastic = when(load.clone(), Limit::per_minute(1_000).named("api"))
///     .otherwise(Limit::per_minute(100).named("api"))
///     .by(Ip::peer());
///
/// # let seen = load.clone();
/// let app = App::new()
/// #   .route("/", web::get().to(move || std::future::ready(seen.count().to_string())))
///     .wrap(InFlightMiddleware::new(load))
///     // What is wrapped last is outermost: what it refuses is not counted.
///     .wrap(RateLimit::new(elastic));
/// # actix_web::rt::System::new().block_on(async {
/// #     let app = test::init_service(app).await;
/// #     let request = test::TestRequest::get().peer_addr("192.0.2.1:1".parse().unwrap());
/// #     assert_eq!(test::call_and_read_body(&app, request.to_request()).await, "1");
/// # });
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct InFlightMiddleware {
    load: InFlight,
    hold: Hold,
}

impl InFlightMiddleware {
    /// Counts in `load`, and in its clones.
    pub fn new(load: InFlight) -> Self {
        Self { load, hold: Hold::End }
    }

    /// Until when a request counts: by default until the response's body has ended.
    pub fn hold_until(self, hold: Hold) -> Self {
        Self { hold, ..self }
    }
}

impl<I, B> Transform<I, ServiceRequest> for InFlightMiddleware
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<Body<B>>;
    type Error = Error;
    type Transform = InFlightService<I>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(InFlightService { inner, middleware: self.clone() }))
    }
}

/// A service behind an [`InFlightMiddleware`].
#[derive(Debug)]
pub struct InFlightService<I> {
    inner: I,
    middleware: InFlightMiddleware,
}

impl<I, B> Service<ServiceRequest> for InFlightService<I>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<Body<B>>;
    type Error = Error;
    type Future = InFlightFuture<I::Future>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        // Before the call: a service may do its work within it.
        let guard = Some(self.middleware.load.enter());
        InFlightFuture { future: self.inner.call(request), guard, hold: self.middleware.hold }
    }
}

pin_project! {
    /// The response of an [`InFlightService`].
    #[derive(Debug)]
    pub struct InFlightFuture<F> {
        #[pin]
        future: F,
        guard: Option<InFlightGuard>,
        hold: Hold,
    }
}

impl<F, B> Future for InFlightFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    type Output = Result<ServiceResponse<Body<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx));
        // Not when the future is dropped: some are kept for longer than they are needed.
        let guard = this.guard.take().filter(|_| *this.hold == Hold::End);
        Poll::Ready(response.map(|response| {
            response
                .map_body(|_, body| Body::guarded(body, guard.map(|guard| Box::new(guard) as _)))
        }))
    }
}
