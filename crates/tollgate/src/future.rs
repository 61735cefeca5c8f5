use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tollgate_core::{Charge, Course, DecisionSpan, Paid, Place, Store, StoreError, Ticket};
use tower::Service;

use crate::respond::Respond;
use crate::service::{Limited, close};
use crate::sleep::{Sleep, sleep};

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit).
    ///
    /// Dropped while the request waits, it gives the request's place back.
    pub struct ResponseFuture<I, B, R, S, P>
    where
        I: Service<Request<B>>,
        S: Store,
    {
        #[pin]
        state: State<I, B, R, S, P>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, R, S, P>
    where
        I: Service<Request<B>>,
        S: Store,
    {
        Refused { response: Option<I::Response> },
        Running { #[pin] future: I::Future, paid: Paid<Arc<Limited<R, S, P>>> },
        Waiting { sleep: Sleep, waiter: Option<Box<Waiter<I, B, R, S, P>>> },
        Deciding {
            #[pin]
            answer: S::Future,
            deadline: Sleep,
            asked: Option<Box<Asked<I, B, R, S, P>>>,
        },
    }
}

/// A request, and the service that was made ready for it.
pub(crate) struct Forward<I, B, R, S, P> {
    service: I,
    request: Request<B>,
    limited: Arc<Limited<R, S, P>>,
}

struct Waiter<I, B, R, S: Store, P> {
    forward: Forward<I, B, R, S, P>,
    ticket: Ticket<Arc<Limited<R, S, P>>>,
    _place: Option<Place>,
    span: DecisionSpan,
}

struct Asked<I, B, R, S, P> {
    forward: Forward<I, B, R, S, P>,
    charge: Charge,
    place: Option<Place>,
    span: DecisionSpan,
}

impl<I, B, R, S, P> Forward<I, B, R, S, P> {
    pub(crate) fn new(service: I, request: Request<B>, limited: &Arc<Limited<R, S, P>>) -> Self {
        Self { service, request, limited: Arc::clone(limited) }
    }
}

impl<I, B, R, S, P> ResponseFuture<I, B, R, S, P>
where
    I: Service<Request<B>>,
    S: Store,
{
    pub(crate) fn refused(response: I::Response) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    #[inline]
    pub(crate) fn running(future: I::Future, paid: Paid<Arc<Limited<R, S, P>>>) -> Self {
        Self { state: State::Running { future, paid } }
    }

    pub(crate) fn waiting(
        wait: Duration,
        ticket: Ticket<Arc<Limited<R, S, P>>>,
        place: Option<Place>,
        forward: Forward<I, B, R, S, P>,
    ) -> Self {
        let span = DecisionSpan::new();
        Self { state: State::waiting(wait, ticket, place, forward, span) }
    }

    pub(crate) fn deciding(
        answer: S::Future,
        charge: Charge,
        place: Option<Place>,
        forward: Forward<I, B, R, S, P>,
    ) -> Self {
        let policy = &forward.limited.policy;
        let deadline = sleep(&policy.clock, policy.deadline);
        let span = DecisionSpan::new();
        let asked = Some(Box::new(Asked { forward, charge, place, span }));
        Self { state: State::Deciding { answer, deadline, asked } }
    }
}

impl<I, B, R, S, P> State<I, B, R, S, P>
where
    I: Service<Request<B>>,
    S: Store,
{
    fn waiting(
        wait: Duration,
        ticket: Ticket<Arc<Limited<R, S, P>>>,
        place: Option<Place>,
        forward: Forward<I, B, R, S, P>,
        span: DecisionSpan,
    ) -> Self {
        let sleep = sleep(&forward.limited.policy.clock, wait);
        Self::Waiting {
            sleep,
            waiter: Some(Box::new(Waiter { forward, ticket, _place: place, span })),
        }
    }

    fn calling(forward: Forward<I, B, R, S, P>, paid: Paid<Arc<Limited<R, S, P>>>) -> Self {
        let Forward { mut service, mut request, limited } = forward;
        limited.mark(&paid, &mut request);
        Self::Running { future: service.call(request), paid }
    }
}

impl<I, B, R, S, P, ResBody> Future for ResponseFuture<I, B, R, S, P>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
    S: Store,
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
                StateProj::Running { future, paid } => {
                    let mut response = ready!(future.poll(cx))?;
                    close(paid, &mut response);
                    return Poll::Ready(Ok(response));
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
                    let limited = || Arc::clone(&forward.limited);
                    let policy = &forward.limited.policy;
                    match span.in_scope(|| policy.judge(outcome, &charge)) {
                        Course::Serve(served) => {
                            let paid = served.paid(&mut charge, limited);
                            State::calling(forward, paid)
                        }
                        Course::Wait(wait, outcome) => {
                            let ticket = Ticket::new(limited(), charge, outcome);
                            State::waiting(wait, ticket, place, forward, span)
                        }
                        Course::Refuse(refusal) => {
                            let response = forward.limited.answer(refusal, &forward.request);
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

impl<I, B, R, S, P> fmt::Debug for ResponseFuture<I, B, R, S, P>
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
