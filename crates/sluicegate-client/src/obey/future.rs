use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use super::shared::Permit;
use crate::error::{BoxError, Refused};
use crate::outgoing::OutgoingResponse;

type Turn = Pin<Box<dyn Future<Output = Result<Option<Permit>, Refused>> + Send>>;

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
        Waiting { turn: Turn, to_send: Option<(S, R)> },
        Calling { #[pin] response: S::Future },
        CallingLater { #[pin] response: Oneshot<S, R> },
        Refused { error: Option<Refused> },
    }
}

const POLLED_AGAIN: &str = "polled after it was ready";

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) fn calling(response: S::Future, permit: Option<Permit>) -> Self {
        Self { state: State::Calling { response }, permit }
    }

    pub(super) fn waiting(turn: Turn, service: S, request: R) -> Self {
        Self { state: State::Waiting { turn, to_send: Some((service, request)) }, permit: None }
    }

    pub(super) fn refused(error: Refused) -> Self {
        Self { state: State::Refused { error: Some(error) }, permit: None }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let result = loop {
            match this.state.as_mut().project() {
                StateProj::Waiting { turn, to_send } => {
                    *this.permit = ready!(turn.as_mut().poll(cx))?;
                    let (service, request) = to_send.take().expect(POLLED_AGAIN);
                    let response = Oneshot::new(service, request);
                    this.state.set(State::CallingLater { response });
                }
                StateProj::Calling { response } => break ready!(response.poll(cx)),
                StateProj::CallingLater { response } => break ready!(response.poll(cx)),
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
