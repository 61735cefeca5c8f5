use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tollgate_core::{Charge, Place, Store, StoreError, Ticket};
use tower::Service;

use crate::headers::HttpHeaders;
use crate::judge::{Judged, Paid};
use crate::layer::Policy;
use crate::reply::HttpReply;
use crate::respond::Respond;
use crate::sleep::Sleep;

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit).
    ///
    /// Dropped while the request waits, it gives the request's place back.
    pub struct ResponseFuture<I, B, S, P>
    where
        I: Service<Request<B>>,
        S: Store,
    {
        #[pin]
        state: State<I, B, S, P>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, S, P>
    where
        I: Service<Request<B>>,
        S: Store,
    {
        Refused { response: Option<I::Response> },
        Running { #[pin] future: I::Future, paid: Option<Paid<S>>, policy: Arc<Policy<S, P>> },
        Waiting { sleep: Sleep, waiter: Option<Box<Waiter<I, B, S, P>>> },
        Deciding {
            #[pin]
            answer: S::Future,
            deadline: Sleep,
            asked: Option<Box<Asked<I, B, S, P>>>,
        },
    }
}

/// A request, and the service that was made ready for it.
pub(crate) struct Forward<I, B, S, P> {
    service: I,
    request: Request<B>,
    policy: Arc<Policy<S, P>>,
}

struct Waiter<I, B, S: Store, P> {
    forward: Forward<I, B, S, P>,
    ticket: Ticket<S>,
    _place: Option<Place>,
}

struct Asked<I, B, S, P> {
    forward: Forward<I, B, S, P>,
    charge: Charge,
    place: Option<Place>,
}

impl<I, B, S, P> Forward<I, B, S, P> {
    pub(crate) fn new(service: I, request: Request<B>, policy: &Arc<Policy<S, P>>) -> Self {
        Self { service, request, policy: Arc::clone(policy) }
    }
}

impl<I, B, S, P> ResponseFuture<I, B, S, P>
where
    I: Service<Request<B>>,
    S: Store,
{
    pub(crate) fn refused(response: I::Response) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    pub(crate) fn running(future: I::Future, paid: Paid<S>, policy: &Arc<Policy<S, P>>) -> Self {
        let policy = Arc::clone(policy);
        Self { state: State::Running { future, paid: Some(paid), policy } }
    }

    pub(crate) fn waiting(
        wait: Duration,
        ticket: Ticket<S>,
        place: Option<Place>,
        forward: Forward<I, B, S, P>,
    ) -> Self {
        Self { state: State::waiting(wait, ticket, place, forward) }
    }

    pub(crate) fn deciding(
        answer: S::Future,
        charge: Charge,
        place: Option<Place>,
        forward: Forward<I, B, S, P>,
    ) -> Self {
        let deadline = Sleep::new(&forward.policy.clock, forward.policy.deadline);
        let asked = Some(Box::new(Asked { forward, charge, place }));
        Self { state: State::Deciding { answer, deadline, asked } }
    }
}

impl<I, B, S, P> State<I, B, S, P>
where
    I: Service<Request<B>>,
    S: Store,
{
    fn waiting(
        wait: Duration,
        ticket: Ticket<S>,
        place: Option<Place>,
        forward: Forward<I, B, S, P>,
    ) -> Self {
        let sleep = Sleep::new(&forward.policy.clock, wait);
        Self::Waiting { sleep, waiter: Some(Box::new(Waiter { forward, ticket, _place: place })) }
    }
}

impl<I, B, S, P, ResBody> Future for ResponseFuture<I, B, S, P>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
    S: Store + Clone,
    P: Respond<B, ResBody>,
{
    type Output = Result<Response<ResBody>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Refused { response } => {
                    return Poll::Ready(Ok(response.take().expect(POLLED_AGAIN)));
                }
                StateProj::Running { future, paid, policy } => {
                    let mut response = ready!(future.poll(cx))?;
                    policy.close(paid.take().expect(POLLED_AGAIN), &mut response);
                    return Poll::Ready(Ok(response));
                }
                StateProj::Waiting { sleep, waiter } => {
                    ready!(Pin::new(sleep).poll(cx));
                    let Waiter { forward, mut ticket, .. } = *waiter.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    let Forward { mut service, request, policy } = forward;
                    let future = service.call(request);
                    State::Running { future, paid: Some(Paid::Ticket(ticket)), policy }
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
                    let Forward { mut service, request, policy } = forward;
                    match policy.judge(decision, charge, request) {
                        Judged::Forward(request, paid) => State::Running {
                            future: service.call(request),
                            paid: Some(paid),
                            policy,
                        },
                        Judged::Wait(request, wait, ticket) => State::waiting(
                            wait,
                            ticket,
                            place,
                            Forward { service, request, policy },
                        ),
                        Judged::Answer(response) => State::Refused { response: Some(response) },
                    }
                }
            };
            state.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<S: Store, P> Policy<S, P> {
    /// The response is known: tells the client how it stands, and settles what it cost.
    fn close<ResBody>(&self, paid: Paid<S>, response: &mut Response<ResBody>) {
        let reply = HttpReply(&*response);
        let refused_inside = tollgate_core::Reply::is_refusal(&reply);
        let decision = match paid {
            Paid::Ticket(ticket) => {
                let decision = ticket.decision().clone();
                ticket.settle(&reply);
                decision
            }
            Paid::Nothing(decision) => decision,
            Paid::Unknown => return,
        };
        if refused_inside {
            // What was charged here is given back, so what was announced would not be true.
            return;
        }
        self.fields.write_served(&decision, &mut HttpHeaders(response.headers_mut()));
        if self.extensions {
            response.extensions_mut().insert(decision);
        }
    }
}

impl<I, B, S, P> fmt::Debug for ResponseFuture<I, B, S, P>
where
    I: Service<Request<B>>,
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
