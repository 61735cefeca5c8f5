use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{self, listen_unserved, note_unserved};
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::limited::{Inside, Paid, close};
use crate::sleep::TokioTimer;

pin_project! {
    /// The response of a [`RateLimitService`](crate::service::RateLimitService).
    ///
    /// If it is dropped while the request waits, it gives the request's place back, and outer middleware gives its
    /// charges back.
    pub struct ResponseFuture<I, S>
    where
        I: Service<ServiceRequest>,
        S: Store,
    {
        #[pin]
        state: State<I, S>,
    }

    impl<I, S> PinnedDrop for ResponseFuture<I, S>
    where
        I: Service<ServiceRequest>,
        S: Store,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut state = this.project().state;
            match state.as_mut().project() {
                StateProj::Running { paid, .. } if paid.is_open() => {
                    listen_unserved(|| state.set(State::Refused { response: None }));
                }
                StateProj::Pending { forward: Some(_), .. } => note_unserved(),
                _ => {}
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I, S>
    where
        I: Service<ServiceRequest>,
        S: Store,
    {
        Refused { response: Option<ServiceResponse<BoxBody>> },
        // The future is dropped first: it says whether a handler was running.
        Running { #[pin] future: I::Future, paid: Paid<I, S> },
        Pending { pending: Pending<I, S>, forward: Option<Box<Forward<I, S>>> },
    }
}

/// A request that waits for a middleware's store, or for its turn.
type Pending<I, S> = adapter::Pending<Rc<Inside<I, S>>, TokioTimer>;

/// A request, and the service to call with it. Boxed, because it is large and rare: the future of every request is moved
/// a few times.
struct Forward<I, S> {
    request: ServiceRequest,
    inside: Rc<Inside<I, S>>,
}

impl<I, S> ResponseFuture<I, S>
where
    I: Service<ServiceRequest>,
    S: Store,
{
    pub(crate) fn refused(response: ServiceResponse<BoxBody>) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    pub(crate) fn running(future: I::Future, paid: Paid<I, S>) -> Self {
        Self { state: State::Running { future, paid } }
    }

    pub(crate) fn pending(
        pending: Pending<I, S>,
        request: ServiceRequest,
        inside: Rc<Inside<I, S>>,
    ) -> Self {
        let forward = Some(Box::new(Forward { request, inside }));
        Self { state: State::Pending { pending, forward } }
    }
}

impl<I, S, B> Future for ResponseFuture<I, S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    S: Store + 'static,
{
    type Output = Result<ServiceResponse<EitherBody<Body<B>>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map_into_right_body()));
                }
                StateProj::Running { future, paid } => {
                    let response = close(paid, ready!(future.poll(cx)));
                    return Poll::Ready(response.map(ServiceResponse::map_into_left_body));
                }
                StateProj::Pending { pending, forward } => {
                    let result = ready!(Pin::new(pending).poll(cx));
                    let Forward { request, inside } = *forward.take().expect(POLLED_AGAIN);
                    match result {
                        // Readiness is not checked again. In actix-web a worker checks it before it takes
                        // connections, not for each request, and checking here would take its waker away.
                        Ok(paid) => {
                            inside.limited.mark(&paid, &request);
                            State::Running { future: inside.service.call(request), paid }
                        }
                        Err(refusal) => {
                            let response = inside.limited.answer(refusal, request);
                            State::Refused { response: Some(response) }
                        }
                    }
                }
            };
            state.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, S> fmt::Debug for ResponseFuture<I, S>
where
    I: Service<ServiceRequest>,
    S: Store,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Refused { .. } => "ResponseFuture(refused)",
            State::Running { .. } => "ResponseFuture(running)",
            State::Pending { .. } => "ResponseFuture(pending)",
        })
    }
}
