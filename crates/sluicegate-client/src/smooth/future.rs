use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use crate::bound::{Stated, during};
use crate::departure;
use crate::error::{BoxError, Refused};
use crate::outgoing::OutgoingRequest;

/// Ends when a request may go, or with its refusal.
pub(super) type Turn = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send>>;

/// A request that waits, and the service that it goes to.
pub(super) struct Sending<S, R> {
    pub(super) service: S,
    pub(super) request: R,
    pub(super) stated: Stated,
    /// When its waits end, if the layer says so.
    pub(super) ends: Option<u64>,
}

pin_project! {
    /// The response, or [`Refused`].
    pub struct ResponseFuture<S: Service<R>, R> {
        #[pin]
        state: State<S, R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S: Service<R>, R> {
        Waiting { turn: Turn, sending: Option<Sending<S, R>> },
        Calling { #[pin] response: S::Future },
        CallingLater { left: Option<Duration>, #[pin] response: Oneshot<S, R> },
    }
}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) fn calling(response: S::Future) -> Self {
        Self { state: State::Calling { response } }
    }

    pub(super) fn waiting(turn: Turn, sending: Sending<S, R>) -> Self {
        Self { state: State::Waiting { turn, sending: Some(sending) } }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: OutgoingRequest,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Calling { response } => return response.poll(cx).map_err(Into::into),
                StateProj::CallingLater { left, response } => {
                    return during(*left, || response.poll(cx)).0.map_err(Into::into);
                }
                StateProj::Waiting { turn, sending } => {
                    ready!(turn.as_mut().poll(cx))?;
                    let mut sending = sending.take().expect("a turn comes once");
                    let left = sending.ends.map(|ends| sending.stated.until(ends));
                    sending.stated.shorten(&mut sending.request);
                    departure::leave();
                    let response = Oneshot::new(sending.service, sending.request);
                    this.state.set(State::CallingLater { left, response });
                }
            }
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
