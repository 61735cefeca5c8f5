use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use sluicegate::adapter::Sleep;
use tower::util::Oneshot;
use tower_service::Service;

use super::shared::Watched;
use crate::departure::{Departing, Stage, watch};
use crate::error::BoxError;
use crate::marker::{self, Hedged};
use crate::outgoing::{OutgoingResponse, ReplayRequest};
use crate::retry::Outcome;

pin_project! {
    /// The first response to a request or its copy.
    pub struct ResponseFuture<S: Service<R>, R> {
        // Dropped when the copy was answered first.
        #[pin]
        first: Option<S::Future>,
        // How the first one failed, while its copy is awaited.
        failure: Option<Result<S::Response, BoxError>>,
        // Boxed, because most requests have their response before it matters.
        hedging: Option<Box<Hedging<S, R>>>,
    }
}

/// The copy of a request, from before it is sent until it has ended.
pub(super) struct Hedging<S: Service<R>, R> {
    watched: Watched,
    /// How long the caller waits.
    patience: Option<Duration>,
    copy: Copy<S, R>,
    /// After which time a response is late.
    late: Duration,
    /// How long the copy is still awaited when the first one has failed.
    grace: Option<Sleep<tokio::time::Sleep>>,
}

enum Copy<S: Service<R>, R> {
    /// The request has not left.
    Held(Departing<S>, R),
    /// Its response is not late yet.
    Waiting(Sleep<tokio::time::Sleep>, Departing<S>, R),
    Sent {
        response: Pin<Box<Oneshot<Departing<S>, R>>>,
        has_left: bool,
    },
    Never,
}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) const fn new(first: S::Future, hedging: Option<Box<Hedging<S, R>>>) -> Self {
        Self { first: Some(first), failure: None, hedging }
    }
}

impl<S: Service<R>, R> Hedging<S, R> {
    pub(super) fn new(
        watched: Watched,
        copy: Option<(Departing<S>, R)>,
        patience: Option<Duration>,
    ) -> Self {
        let copy = copy.map_or(Copy::Never, |(service, request)| Copy::Held(service, request));
        Self { watched, patience, copy, late: Duration::ZERO, grace: None }
    }

    /// The request leaves: its time begins.
    pub(super) fn leaves(&mut self) {
        let late = self.watched.leaves();
        self.copy = match (std::mem::replace(&mut self.copy, Copy::Never), late) {
            (Copy::Held(service, request), Some(late))
                if self.patience.is_none_or(|patience| late < patience) =>
            {
                self.late = late;
                Copy::Waiting(self.sleep(), service, request)
            }
            _ => Copy::Never,
        };
    }

    /// Sleeps until what begins now is late.
    fn sleep(&self) -> Sleep<tokio::time::Sleep> {
        Sleep::new(&self.watched.shared().clock, self.late, tokio::time::sleep)
    }

    /// The first one has failed. Returns whether its copy is awaited, which is until that is late, too.
    fn awaits_copy(&mut self) -> bool {
        let is_sent = matches!(self.copy, Copy::Sent { .. });
        self.grace = is_sent.then(|| self.sleep());
        is_sent
    }

    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.grace.as_mut().is_some_and(|grace| Pin::new(grace).poll(cx).is_ready())
    }

    /// Ends the copy, and takes back what was paid for one that has not left.
    fn end_copy(&mut self) {
        if let Copy::Sent { has_left: false, .. } = self.copy {
            self.watched.shared().budget.refund();
        }
        self.copy = Copy::Never;
    }
}

impl<S, R> Hedging<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
{
    /// The result of the copy, which is sent when it is time.
    fn poll_copy(&mut self, cx: &mut Context<'_>) -> Poll<Result<S::Response, BoxError>> {
        loop {
            match std::mem::replace(&mut self.copy, Copy::Never) {
                Copy::Waiting(mut sleep, service, request) => {
                    if Pin::new(&mut sleep).poll(cx).is_pending() {
                        self.copy = Copy::Waiting(sleep, service, request);
                        return Poll::Pending;
                    }
                    if !self.watched.shared().budget.withdraw() {
                        return Poll::Pending;
                    }
                    let response = Box::pin(Oneshot::new(service, request));
                    self.copy = Copy::Sent { response, has_left: false };
                }
                Copy::Sent { mut response, has_left } => {
                    let poll = || marker::inside::<Hedged, _>(|| response.as_mut().poll(cx));
                    let (result, stage) = watch(poll);
                    let has_left = has_left || stage == Stage::Left;
                    self.copy = Copy::Sent { response, has_left };
                    let result = ready!(result);
                    self.end_copy();
                    return Poll::Ready(result.map_err(Into::into));
                }
                other => {
                    self.copy = other;
                    return Poll::Pending;
                }
            }
        }
    }
}

impl<S: Service<R>, R> Drop for Hedging<S, R> {
    fn drop(&mut self) {
        self.end_copy();
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
        let Some(hedging) = this.hedging else {
            let first = this.first.as_pin_mut().expect("polled after it was ready");
            return first.poll(cx).map_err(Into::into);
        };
        if let Some(first) = this.first.as_mut().as_pin_mut() {
            let (result, stage) = watch(|| marker::inside::<Hedged, _>(|| first.poll(cx)));
            if stage == Stage::Left && !hedging.watched.has_left() {
                hedging.leaves();
            }
            if let Poll::Ready(result) = result {
                let result = result.map_err(Into::into);
                this.first.set(None);
                if !has_failed(&result) {
                    hedging.watched.answered();
                    hedging.end_copy();
                    return Poll::Ready(result);
                }
                hedging.watched.failed();
                if !hedging.awaits_copy() {
                    hedging.end_copy();
                    return Poll::Ready(result);
                }
                *this.failure = Some(result);
            }
        }
        match hedging.poll_copy(cx) {
            Poll::Ready(result) if !has_failed(&result) => {
                hedging.watched.answered();
                this.first.set(None);
                return Poll::Ready(result);
            }
            Poll::Pending if !hedging.is_over(cx) => return Poll::Pending,
            _ => hedging.end_copy(),
        }
        match this.failure.take() {
            Some(failure) => Poll::Ready(failure),
            // The first one may still be answered.
            None => Poll::Pending,
        }
    }
}

/// Whether the other one may still be answered better.
fn has_failed<T: OutgoingResponse>(result: &Result<T, BoxError>) -> bool {
    match result {
        Ok(response) => {
            Outcome::Response { status: response.status(), headers: response.headers() }
                .is_passing()
        }
        Err(_) => true,
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
