use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use pin_project_lite::pin_project;
use tollgate_core::{Charge, Decision, Place, Reply, Store, StoreError, Ticket};

use crate::headers::ActixHeaders;
use crate::judge::{Judged, Paid};
use crate::middleware::Policy;
use crate::reply::{ActixReply, ErrorReply};
use crate::service::Limited;
use crate::sleep::Sleep;

pin_project! {
    /// The response of a [`RateLimitService`](crate::RateLimitService).
    ///
    /// Dropped while the request waits, it gives the request's place back.
    pub struct ResponseFuture<I, S>
    where
        I: Service<ServiceRequest>,
        S: Store,
    {
        #[pin]
        state: State<I, S>,
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
        Running { #[pin] future: I::Future, paid: Option<Paid<S>>, limited: Rc<Limited<I, S>> },
        Waiting { sleep: Sleep, waiter: Option<Box<Waiter<I, S>>> },
        Deciding { #[pin] answer: S::Future, deadline: Sleep, asked: Option<Box<Asked<I, S>>> },
    }
}

/// A request, and the service to call with it.
pub(crate) struct Forward<I, S> {
    request: ServiceRequest,
    limited: Rc<Limited<I, S>>,
}

struct Waiter<I, S: Store> {
    forward: Forward<I, S>,
    ticket: Ticket<S>,
    _place: Option<Place>,
}

struct Asked<I, S> {
    forward: Forward<I, S>,
    charge: Charge,
    place: Option<Place>,
}

impl<I, S> Forward<I, S> {
    pub(crate) fn new(request: ServiceRequest, limited: &Rc<Limited<I, S>>) -> Self {
        Self { request, limited: Rc::clone(limited) }
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

    pub(crate) fn running(future: I::Future, paid: Paid<S>, limited: &Rc<Limited<I, S>>) -> Self {
        Self { state: State::Running { future, paid: Some(paid), limited: Rc::clone(limited) } }
    }

    pub(crate) fn waiting(
        wait: Duration,
        ticket: Ticket<S>,
        place: Option<Place>,
        forward: Forward<I, S>,
    ) -> Self {
        Self { state: State::waiting(wait, ticket, place, forward) }
    }

    pub(crate) fn deciding(
        answer: S::Future,
        charge: Charge,
        place: Option<Place>,
        forward: Forward<I, S>,
    ) -> Self {
        let policy = &forward.limited.policy;
        let deadline = Sleep::new(&policy.clock, policy.deadline);
        let asked = Some(Box::new(Asked { forward, charge, place }));
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
        ticket: Ticket<S>,
        place: Option<Place>,
        forward: Forward<I, S>,
    ) -> Self {
        let sleep = Sleep::new(&forward.limited.policy.clock, wait);
        Self::Waiting { sleep, waiter: Some(Box::new(Waiter { forward, ticket, _place: place })) }
    }

    /// Calls the service, without asking again whether it is ready: in actix-web a worker asks before
    /// it takes connections, not for each request, and asking here would take the worker's waker away.
    fn calling(forward: Forward<I, S>, paid: Paid<S>) -> Self {
        let Forward { request, limited } = forward;
        Self::Running { future: limited.service.call(request), paid: Some(paid), limited }
    }
}

impl<I, S, B> Future for ResponseFuture<I, S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    S: Store + Clone,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map_into_right_body()));
                }
                StateProj::Running { future, paid, limited } => {
                    let mut response = ready!(future.poll(cx));
                    limited.policy.close(paid.take().expect(POLLED_AGAIN), &mut response);
                    return Poll::Ready(response.map(ServiceResponse::map_into_left_body));
                }
                StateProj::Waiting { sleep, waiter } => {
                    ready!(Pin::new(sleep).poll(cx));
                    let Waiter { forward, mut ticket, .. } = *waiter.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    State::calling(forward, Paid::Ticket(ticket))
                }
                StateProj::Deciding { answer, deadline, asked } => {
                    let decision = match answer.poll(cx) {
                        Poll::Ready(decision) => decision,
                        Poll::Pending => {
                            ready!(Pin::new(deadline).poll(cx));
                            Err(StoreError::too_slow())
                        }
                    };
                    let Asked { forward, charge, place } = *asked.take().expect(POLLED_AGAIN);
                    let Forward { request, limited } = forward;
                    match limited.policy.judge(decision, charge, request) {
                        Judged::Forward(request, paid) => {
                            State::calling(Forward { request, limited }, paid)
                        }
                        Judged::Wait(request, wait, ticket) => {
                            State::waiting(wait, ticket, place, Forward { request, limited })
                        }
                        Judged::Answer(response) => State::Refused { response: Some(response) },
                    }
                }
            };
            state.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<S: Store> Policy<S> {
    /// The response is known: settles what it cost, and tells the client how it stands.
    fn close<B>(&self, paid: Paid<S>, response: &mut Result<ServiceResponse<B>, Error>) {
        match response {
            Err(error) => {
                settle(paid, &ErrorReply(error));
            }
            Ok(response) => {
                let Some(decision) = settle(paid, &ActixReply(response)) else { return };
                self.fields.write_served(&decision, &mut ActixHeaders(response.headers_mut()));
                if self.extensions {
                    response.response_mut().extensions_mut().insert(decision);
                }
            }
        }
    }
}

/// Settles, and returns what there is to tell of it.
fn settle<S: Store>(paid: Paid<S>, reply: &dyn Reply) -> Option<Decision> {
    let decision = match paid {
        Paid::Ticket(ticket) => {
            let decision = ticket.decision().clone();
            ticket.settle(reply);
            decision
        }
        Paid::Nothing(decision) => decision,
        Paid::Unknown => return None,
    };
    // Where a limit further in refused, what was charged here is given back, so what would be
    // announced would not be true.
    (!reply.is_refusal()).then_some(decision)
}

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
