//! A request that waits for its turn and is then sent: the future of the layers that let requests wait.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use sluicegate::clock::Clock;
use tower::util::Oneshot;
use tower_service::Service;

use crate::call::{StatedTimeout, during, leave};
use crate::error::BoxError;
use crate::outgoing::OutgoingRequest;

/// Ends with what is held while the request is under way, or with why the request is not sent.
pub(crate) type Turn<G> = Pin<Box<dyn Future<Output = Result<G, BoxError>> + Send>>;

/// A request that waits, and the service that it goes to.
pub(crate) struct Waiting<S, R, G> {
    turn: Turn<G>,
    service: S,
    request: R,
    stated: StatedTimeout,
    /// When its waits end, if the layer says so.
    ends: Option<u64>,
}

impl<S: Clone, R: OutgoingRequest, G> Waiting<S, R, G> {
    /// Lets `request` wait for its `turn` by `clock`.
    ///
    /// What was made ready is given up, because it may hold one of few places, as that of a `ConcurrencyLimit`: others
    /// need it meanwhile. The request is sent through a clone, which becomes ready after the wait.
    pub(crate) fn new(
        ready: &mut S,
        turn: Turn<G>,
        request: R,
        clock: &Clock,
        ends: Option<u64>,
    ) -> Self {
        let service = ready.clone();
        *ready = service.clone();
        let stated = StatedTimeout::by(clock, &request);
        Self { turn, service, request, stated, ends }
    }
}

pin_project! {
    /// The response, or [`Refused`](crate::Refused).
    pub struct ResponseFuture<S: Service<R>, R, G> {
        #[pin]
        state: State<S, R, G>,
        // Dropped without a response, it says so.
        held: Option<G>,
        answered: fn(G, &S::Response),
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S: Service<R>, R, G> {
        // Boxed, because futures are moved and most requests do not wait.
        Waiting { waiting: Option<Box<Waiting<S, R, G>>> },
        Calling { #[pin] response: S::Future },
        CallingLater { left: Option<Duration>, #[pin] response: Oneshot<S, R> },
        Failed { error: Option<BoxError> },
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<S: Service<R>, R, G> ResponseFuture<S, R, G> {
    /// `answered` is called with what is held when the response is there.
    pub(crate) fn calling(response: S::Future, held: G, answered: fn(G, &S::Response)) -> Self {
        Self { state: State::Calling { response }, held: Some(held), answered }
    }

    pub(crate) fn waiting(waiting: Waiting<S, R, G>, answered: fn(G, &S::Response)) -> Self {
        let waiting = Some(Box::new(waiting));
        Self { state: State::Waiting { waiting }, held: None, answered }
    }

    pub(crate) fn failed(error: impl Into<BoxError>) -> Self {
        let error = Some(error.into());
        Self { state: State::Failed { error }, held: None, answered: |_, _| {} }
    }
}

impl<S, R, G> Future for ResponseFuture<S, R, G>
where
    S: Service<R, Error: Into<BoxError>>,
    R: OutgoingRequest,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let result = loop {
            match this.state.as_mut().project() {
                StateProj::Waiting { waiting } => {
                    let turn = &mut waiting.as_mut().expect(POLLED_AGAIN).turn;
                    *this.held = Some(ready!(turn.as_mut().poll(cx))?);
                    let waiting = waiting.take().expect(POLLED_AGAIN);
                    let Waiting { service, mut request, stated, ends, .. } = *waiting;
                    let left = ends.map(|ends| stated.until(ends));
                    stated.shorten(&mut request);
                    leave();
                    let response = Oneshot::new(service, request);
                    this.state.set(State::CallingLater { left, response });
                }
                StateProj::Calling { response } => break ready!(response.poll(cx)),
                StateProj::CallingLater { left, response } => {
                    // Layers further in are called in these polls, and not before.
                    break ready!(during(*left, || response.poll(cx)).0);
                }
                StateProj::Failed { error } => {
                    return Poll::Ready(Err(error.take().expect(POLLED_AGAIN)));
                }
            }
        };
        let held = this.held.take();
        if let (Ok(response), Some(held)) = (&result, held) {
            (this.answered)(held, response);
        }
        Poll::Ready(result.map_err(Into::into))
    }
}

impl<S: Service<R>, R, G> fmt::Debug for ResponseFuture<S, R, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
