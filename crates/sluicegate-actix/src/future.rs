use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{
    Charge, Course, DecisionSpan, Paid, Place, listen_unserved, note_unserved,
};
use sluicegate_core::store::{Store, StoreError, Ticket};

use crate::body::Body;
use crate::rate_limit::{Inside, close};
use crate::sleep::{Sleep, sleep};

pin_project! {
    /// The response of a [`RateLimitService`](crate::service::RateLimitService).
    ///
    /// Dropped while the request waits, it gives the request's place back, and middleware further out gives
    /// its charges back.
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
                StateProj::Waiting { waiter: Some(_), .. }
                | StateProj::Deciding { asked: Some(_), .. } => note_unserved(),
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
        Running { #[pin] future: I::Future, paid: Paid<Rc<Inside<I, S>>> },
        Waiting { sleep: Sleep, waiter: Option<Box<Waiter<I, S>>> },
        Deciding { #[pin] answer: S::Future, deadline: Sleep, asked: Option<Box<Asked<I, S>>> },
    }
}

/// A request, and the service to call with it.
pub(crate) struct Forward<I, S> {
    request: ServiceRequest,
    inside: Rc<Inside<I, S>>,
}

struct Waiter<I, S: Store> {
    forward: Forward<I, S>,
    ticket: Ticket<Rc<Inside<I, S>>>,
    _place: Place,
    span: DecisionSpan,
}

struct Asked<I, S> {
    forward: Forward<I, S>,
    charge: Charge,
    place: Option<Place>,
    span: DecisionSpan,
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

    pub(crate) fn running(future: I::Future, paid: Paid<Rc<Inside<I, S>>>) -> Self {
        Self { state: State::Running { future, paid } }
    }

    pub(crate) fn waiting(
        wait: Duration,
        ticket: Ticket<Rc<Inside<I, S>>>,
        place: Place,
        forward: Forward<I, S>,
    ) -> Self {
        let span = DecisionSpan::new();
        Self { state: State::waiting(wait, ticket, place, forward, span) }
    }

    pub(crate) fn deciding(
        answer: S::Future,
        charge: Charge,
        place: Option<Place>,
        forward: Forward<I, S>,
    ) -> Self {
        let policy = &forward.inside.limited.policy;
        let deadline = sleep(&policy.clock, policy.deadline);
        let span = DecisionSpan::new();
        let asked = Some(Box::new(Asked { forward, charge, place, span }));
        Self { state: State::Deciding { answer, deadline, asked } }
    }
}

impl<I, S> State<I, S>
where
    I: Service<ServiceRequest>,
    S: Store,
{
    fn waiting(
        wait: Duration,
        ticket: Ticket<Rc<Inside<I, S>>>,
        place: Place,
        forward: Forward<I, S>,
        span: DecisionSpan,
    ) -> Self {
        let sleep = sleep(&forward.inside.limited.policy.clock, wait);
        Self::Waiting {
            sleep,
            waiter: Some(Box::new(Waiter { forward, ticket, _place: place, span })),
        }
    }

    /// Calls the service, without asking again whether it is ready: in actix-web a worker asks before
    /// it takes connections, not for each request, and asking here would take the worker's waker away.
    fn calling(forward: Forward<I, S>, paid: Paid<Rc<Inside<I, S>>>) -> Self {
        let Forward { request, inside } = forward;
        inside.limited.mark(&paid, &request);
        Self::Running { future: inside.service.call(request), paid }
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
                StateProj::Waiting { sleep, waiter } => {
                    let span = &waiter.as_ref().expect(POLLED_AGAIN).span;
                    ready!(span.in_scope(|| Pin::new(sleep).poll(cx)));
                    let Waiter { forward, mut ticket, .. } = *waiter.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    State::calling(forward, ticket.into())
                }
                StateProj::Deciding { answer, deadline, asked } => {
                    let span = &asked.as_ref().expect(POLLED_AGAIN).span;
                    let outcome = match span.in_scope(|| answer.poll(cx)) {
                        Poll::Ready(outcome) => outcome,
                        Poll::Pending => {
                            ready!(Pin::new(deadline).poll(cx));
                            Err(StoreError::too_slow())
                        }
                    };
                    let Asked { forward, mut charge, place, span } =
                        *asked.take().expect(POLLED_AGAIN);
                    let inside = || Rc::clone(&forward.inside);
                    let policy = &forward.inside.limited.policy;
                    match span.in_scope(|| policy.judge(outcome, &charge, place)) {
                        Course::Serve(served) => {
                            let paid = served.paid(&mut charge, inside);
                            State::calling(forward, paid)
                        }
                        Course::Wait(wait, outcome, place) => {
                            let ticket = Ticket::new(inside(), charge, outcome);
                            State::waiting(wait, ticket, place, forward, span)
                        }
                        Course::Refuse(refusal) => {
                            let Forward { request, inside } = forward;
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
            State::Waiting { .. } => "ResponseFuture(waiting)",
            State::Deciding { .. } => "ResponseFuture(deciding)",
        })
    }
}
