use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use pin_project_lite::pin_project;
use sluicegate_core::Decision;
use sluicegate_core::adapter::{
    Charge, Course, DecisionSpan, Paid, Place, listen_unserved, note_unserved,
};
use sluicegate_core::store::{Store, StoreError, Ticket};
use tower::Service;

use crate::body::Body;
use crate::rate_limit::{Limited, close};
use crate::respond::Respond;
use crate::sleep::{Sleep, sleep};
use crate::upgrade::Upgrade;
use crate::view::{FrameworkBody, Plain};

pin_project! {
    /// The response of a [`RateLimit`](crate::service::RateLimit).
    ///
    /// Dropped while the request waits, it gives the request's place back, and layers further out give
    /// their charges back.
    pub struct ResponseFuture<I, B, R, S, P, W = Plain>
    where
        I: HttpService<B>,
        S: Store,
    {
        #[pin]
        state: State<I, B, R, S, P>,
        framework: PhantomData<fn() -> W>,
    }

    impl<I, B, R, S, P, W> PinnedDrop for ResponseFuture<I, B, R, S, P, W>
    where
        I: HttpService<B>,
        S: Store,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut state = this.project().state;
            match state.as_mut().project() {
                StateProj::Running { paid, .. } if paid.is_open() => {
                    listen_unserved(|| state.set(State::Refused { response: None }));
                }
                StateProj::Waiting { waiter: Some(waiter), .. } => waiter.forward.note_unserved(),
                StateProj::Deciding { asked: Some(asked), .. } => asked.forward.note_unserved(),
                _ => {}
            }
        }
    }
}

/// A service of HTTP: what a [`ResponseFuture`] needs to know of the one inside. Every service with
/// requests and responses of the `http` crate is one.
pub trait HttpService<B>: Service<Request<B>, Response = Response<Self::ResBody>> {
    /// The body of its responses.
    type ResBody;
}

impl<I, B, ResBody> HttpService<B> for I
where
    I: Service<Request<B>, Response = Response<ResBody>>,
{
    type ResBody = ResBody;
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, R, S, P>
    where
        I: HttpService<B>,
        S: Store,
    {
        Refused { response: Option<Response<Body<I::ResBody>>> },
        // The future is dropped first: it says whether a handler was running.
        Running {
            #[pin]
            future: I::Future,
            upgrade: Option<Upgrade>,
            paid: Paid<Arc<Limited<R, S, P>>>,
        },
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
    _place: Place,
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

    /// The request is dropped while it waits. That concerns the layers that it has passed, which have left
    /// their decision: not those around a handler that makes this request as a client.
    fn note_unserved(&self) {
        if self.request.extensions().get::<Decision>().is_some() {
            note_unserved();
        }
    }
}

impl<I, B, R, S, P, W> ResponseFuture<I, B, R, S, P, W>
where
    I: HttpService<B>,
    S: Store,
{
    pub(crate) fn refused(response: Response<Body<I::ResBody>>) -> Self {
        Self::at(State::Refused { response: Some(response) })
    }

    #[inline]
    pub(crate) fn running(
        future: I::Future,
        paid: Paid<Arc<Limited<R, S, P>>>,
        upgrade: Option<Upgrade>,
    ) -> Self {
        Self::at(State::Running { future, upgrade, paid })
    }

    #[inline]
    fn at(state: State<I, B, R, S, P>) -> Self {
        Self { state, framework: PhantomData }
    }

    pub(crate) fn waiting(
        wait: Duration,
        ticket: Ticket<Arc<Limited<R, S, P>>>,
        place: Place,
        forward: Forward<I, B, R, S, P>,
    ) -> Self {
        let span = DecisionSpan::new();
        Self::at(State::waiting(wait, ticket, place, forward, span))
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
        Self::at(State::Deciding { answer, deadline, asked })
    }
}

impl<I, B, R, S, P> State<I, B, R, S, P>
where
    I: HttpService<B>,
    S: Store,
{
    fn waiting(
        wait: Duration,
        ticket: Ticket<Arc<Limited<R, S, P>>>,
        place: Place,
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
        let upgrade = limited.mark(&paid, &mut request);
        Self::Running { future: service.call(request), upgrade, paid }
    }
}

impl<I, B, R, S, P, W> Future for ResponseFuture<I, B, R, S, P, W>
where
    I: HttpService<B>,
    R: Send + Sync + 'static,
    S: Store + Send + Sync + 'static,
    W: FrameworkBody<I::ResBody>,
    P: Respond<B, I::ResBody> + Send + Sync + 'static,
{
    type Output = Result<Response<W::Body>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map(W::body)));
                }
                StateProj::Running { future, upgrade, paid } => {
                    let response = ready!(future.poll(cx))?;
                    return Poll::Ready(Ok(close(paid, upgrade, response).map(W::body)));
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
                    match span.in_scope(|| policy.judge(outcome, &charge, place)) {
                        Course::Serve(served) => {
                            let paid = served.paid(&mut charge, limited);
                            State::calling(forward, paid)
                        }
                        Course::Wait(wait, outcome, place) => {
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

impl<I, B, R, S, P, W> fmt::Debug for ResponseFuture<I, B, R, S, P, W>
where
    I: HttpService<B>,
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
