use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use crate::error::{BoxError, Refused};

/// Ends when a request may go, or with its refusal.
pub(super) type Turn = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send>>;

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
        Waiting { turn: Turn, to_send: Option<(S, R)> },
        Calling { #[pin] response: S::Future },
        CallingLater { #[pin] response: Oneshot<S, R> },
    }
}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) fn calling(response: S::Future) -> Self {
        Self { state: State::Calling { response } }
    }

    pub(super) fn waiting(turn: Turn, service: S, request: R) -> Self {
        Self { state: State::Waiting { turn, to_send: Some((service, request)) } }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Calling { response } => return response.poll(cx).map_err(Into::into),
                StateProj::CallingLater { response } => {
                    return response.poll(cx).map_err(Into::into);
                }
                StateProj::Waiting { turn, to_send } => {
                    ready!(turn.as_mut().poll(cx))?;
                    let (service, request) = to_send.take().expect("a turn comes once");
                    this.state
                        .set(State::CallingLater { response: Oneshot::new(service, request) });
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
