use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use sluicegate::adapter::Sleep;
use tower::util::Oneshot;
use tower_service::Service;

use super::attempts::Attempts;
use super::layer::RetryLayer;
use crate::call;
use crate::call::{Retried, Stage};
use crate::error::{BoxError, Refused};
use crate::layered::Layered;
use crate::outgoing::{OutgoingResponse, ReplayRequest};

impl<S, R> Service<R> for Layered<S, RetryLayer>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse> + Clone,
    R: ReplayRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: R) -> Self::Future {
        let shared = &self.layer.0;
        let may_repeat = shared.repeatable.holds(&request);
        let is_nested = call::mark(&mut request, Retried { may_repeat });
        let copy = if may_repeat && !is_nested { request.try_clone() } else { None };
        let timeout = request.timeout();
        let mut attempts = Attempts::new(shared.clone(), is_nested, copy.is_some(), timeout);
        // The one that is ready sends the first attempt.
        let next = self.inner.clone();
        let mut service = std::mem::replace(&mut self.inner, next);
        let call = || call::inside(|| service.call(request));
        let (first, left) = call::during(None, call);
        attempts.bound(left);
        ResponseFuture { state: State::First { first }, service, copy, attempts, kept: None }
    }
}

pin_project! {
    /// The response to the last attempt that was sent.
    pub struct ResponseFuture<S: Service<R>, R> {
        #[pin]
        state: State<S, R>,
        service: S,
        // The request, while it may be sent again.
        copy: Option<R>,
        attempts: Attempts,
        // How the last attempt ended, for the caller if the next one is not sent.
        kept: Option<Result<S::Response, BoxError>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S: Service<R>, R> {
        First { #[pin] first: S::Future },
        Waiting { sleep: Sleep<tokio::time::Sleep>, next: Option<R> },
        Again { #[pin] again: Oneshot<S, R> },
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse> + Clone,
    R: ReplayRequest,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let left = this.attempts.left();
            let (result, left) = match this.state.as_mut().project() {
                StateProj::Waiting { sleep, next } => {
                    ready!(Pin::new(sleep).poll(cx));
                    let next = next.take().expect("each request is sent once");
                    let again = Oneshot::new(this.service.clone(), next);
                    this.state.set(State::Again { again });
                    // Where no layer further in says otherwise.
                    this.attempts.is_at(Stage::Left);
                    continue;
                }
                StateProj::First { first } => {
                    call::during(left, || call::inside(|| first.poll(cx)))
                }
                StateProj::Again { again } => {
                    let poll = || call::during(left, || call::inside(|| again.poll(cx)));
                    let (polled, stage) = call::watch(poll);
                    this.attempts.is_at(stage);
                    polled
                }
            };
            this.attempts.bound(left);
            let result = ready!(result).map_err(Into::into);
            let is_held_back =
                result.as_ref().is_err_and(|error| Refused::find(&**error).is_some());
            match this.kept.take() {
                // A refusal of this program hides nothing that a server has said.
                Some(earlier) if is_held_back => {
                    this.attempts.is_at(Stage::Held);
                    this.attempts.refund();
                    return Poll::Ready(earlier);
                }
                Some(_) => this.attempts.is_at(Stage::Left),
                None if is_held_back => {}
                None => this.attempts.deposit(),
            }
            let Some((sleep, next)) = this.attempts.next(this.copy, &result) else {
                return Poll::Ready(result);
            };
            *this.kept = Some(result);
            // A place that was made ready for the last attempt, and not used, is not held while this one waits.
            *this.service = this.service.clone();
            this.state.set(State::Waiting { sleep, next: Some(next) });
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
