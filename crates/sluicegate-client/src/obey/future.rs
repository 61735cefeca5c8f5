use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use super::shared::Permit;
use crate::bound::{Stated, during};
use crate::departure;
use crate::error::{BoxError, Refused};
use crate::outgoing::{OutgoingRequest, OutgoingResponse};

/// Ends with the permit and what is left of the time to wait.
type Turn = Pin<Box<dyn Future<Output = Result<(Option<Permit>, Duration), Refused>> + Send>>;

pin_project! {
    /// The response, or [`Refused`].
    pub struct ResponseFuture<S: Service<R>, R> {
        #[pin]
        state: State<S, R>,
        permit: Option<Permit>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S: Service<R>, R> {
        Waiting { turn: Turn, to_send: Option<(S, R, Stated)> },
        Calling { #[pin] response: S::Future },
        CallingLater { left: Duration, #[pin] response: Oneshot<S, R> },
        Refused { error: Option<Refused> },
    }
}

const POLLED_AGAIN: &str = "polled after it was ready";

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) fn calling(response: S::Future, permit: Option<Permit>) -> Self {
        Self { state: State::Calling { response }, permit }
    }

    pub(super) fn waiting(turn: Turn, service: S, request: R, stated: Stated) -> Self {
        let to_send = Some((service, request, stated));
        Self { state: State::Waiting { turn, to_send }, permit: None }
    }

    pub(super) fn refused(error: Refused) -> Self {
        Self { state: State::Refused { error: Some(error) }, permit: None }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
    R: OutgoingRequest,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let result = loop {
            match this.state.as_mut().project() {
                StateProj::Waiting { turn, to_send } => {
                    let (permit, left) = ready!(turn.as_mut().poll(cx))?;
                    *this.permit = permit;
                    let (service, mut request, stated) = to_send.take().expect(POLLED_AGAIN);
                    stated.shorten(&mut request);
                    departure::leave();
                    let response = Oneshot::new(service, request);
                    this.state.set(State::CallingLater { left, response });
                }
                StateProj::Calling { response } => break ready!(response.poll(cx)),
                StateProj::CallingLater { left, response } => {
                    break ready!(during(Some(*left), || response.poll(cx)).0);
                }
                StateProj::Refused { error } => {
                    return Poll::Ready(Err(error.take().expect(POLLED_AGAIN).into()));
                }
            }
        };
        match (result, this.permit.take()) {
            (Ok(response), Some(permit)) => {
                permit.observe(&response);
                Poll::Ready(Ok(response))
            }
            // A permit that is dropped is given up.
            (result, _) => Poll::Ready(result.map_err(Into::into)),
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
