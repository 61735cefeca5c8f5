use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{listen_unserved, note_unserved};
use sluicegate_core::store::Store;

use crate::body::Body;
use crate::limited::{Inside, Paid, Pending, close};

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
                StateProj::Pending { queued } if queued.forward.is_some() => note_unserved(),
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
        // Boxed, because it is large and rare: the future of every request is moved a few times.
        Pending { queued: Pin<Box<Queued<I, S>>> },
    }
}

pin_project! {
    /// A request that does not go ahead at once.
    struct Queued<I, S>
    where
        S: Store,
    {
        #[pin]
        pending: Pending<I, S>,
        forward: Option<Forward<I, S>>,
    }
}

/// A request, and the service to call with it.
pub(crate) struct Forward<I, S> {
    request: ServiceRequest,
    inside: Rc<Inside<I, S>>,
}

impl<I, S> Forward<I, S> {
    pub(crate) fn new(request: ServiceRequest, inside: &Rc<Inside<I, S>>) -> Self {
        Self { request, inside: Rc::clone(inside) }
    }
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

    pub(crate) fn pending(pending: Pending<I, S>, forward: Forward<I, S>) -> Self {
        let queued = Queued { pending, forward: Some(forward) };
        Self { state: State::Pending { queued: Box::pin(queued) } }
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
                StateProj::Pending { queued } => {
                    let queued = queued.as_mut().project();
                    let result = ready!(queued.pending.poll(cx));
                    let Forward { request, inside } = queued.forward.take().expect(POLLED_AGAIN);
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
