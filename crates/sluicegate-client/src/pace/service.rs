use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use sluicegate::Memory;
use sluicegate::key::KeyBuf;
use sluicegate::service::Acquire;
use sluicegate::store::{Store, Ticket};
use tower_service::Service;

use super::pacer::{Limits, Pacer};
use super::turn::{PaceError, Turn};
use crate::bound::{Stated, during, earlier, end, left};
use crate::departure;
use crate::error::{BoxError, Refused};
use crate::outgoing::{AnyKey, OutgoingRequest, OutgoingView};

/// A service whose requests wait for their turn; made by [`PaceLayer`](super::PaceLayer).
#[derive(Clone)]
pub struct Pace<I, S = Memory> {
    inner: I,
    key: AnyKey,
    pacer: Pacer<S>,
    limits: Limits<S>,
}

impl<I, S> Pace<I, S> {
    pub(super) fn new(inner: I, key: AnyKey, pacer: Pacer<S>) -> Self {
        Self { inner, key, limits: pacer.limits(), pacer }
    }
}

impl<I, S, R> Service<R> for Pace<I, S>
where
    I: Service<R, Error: Into<BoxError>> + Clone,
    S: Store + Clone,
    R: OutgoingRequest,
{
    type Response = I::Response;
    type Error = BoxError;
    type Future = ResponseFuture<I, S, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let key = KeyBuf::from_view(&self.key, &OutgoingView::new(&request));
        let state = match key {
            Ok(key) => {
                let own = self.pacer.shared().patience.left(Duration::ZERO);
                // A pacer for which nobody waits does not shorten the waits of other layers.
                let bound = own.filter(|own| !own.is_zero());
                let mut acquire = self.pacer.ask(self.limits.load(), key, 1, own);
                if acquire.is_admitted() {
                    let held = Held::AtOnce { _acquire: acquire };
                    let (response, _) = during(bound, || self.inner.call(request));
                    return ResponseFuture { state: State::Sent { response, held } };
                }
                let patience = earlier(earlier(own, left()), request.timeout());
                if patience != own {
                    // The place that was booked may come too late.
                    drop(acquire);
                    acquire = self.pacer.ask(self.limits.load(), key, 1, patience);
                }
                departure::hold();
                let clock = self.pacer.shared().clock();
                let sending = Box::new(Sending {
                    stated: Stated::by(&clock, &request),
                    ends: bound.map(|_| end(&clock, patience.unwrap_or_default())),
                    request,
                    // The service that is ready goes along; the next call gets a fresh one ready.
                    inner: {
                        let next = self.inner.clone();
                        std::mem::replace(&mut self.inner, next)
                    },
                });
                let asking = self.pacer.asking(acquire, key, 1, patience);
                let (turn, _) = during(bound, || Box::pin(asking));
                State::Waiting { turn, held: Some(sending) }
            }
            Err(missing) => State::Failed {
                error: Some(
                    Refused::new(format!("it has no key to pace it by: {missing}"), None).into(),
                ),
            },
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// The response, or [`Refused`].
    pub struct ResponseFuture<I: Service<R>, S: Store, R> {
        #[pin]
        state: State<I, S, R>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I: Service<R>, S: Store, R> {
        Waiting { turn: Pin<Box<Turn<S>>>, held: Option<Box<Sending<I, R>>> },
        // A place of a limit of concurrency is given back with the response.
        Sent { #[pin] response: I::Future, held: Held<S> },
        Failed { error: Option<BoxError> },
    }
}

/// A request that waits, and the service that it goes to.
struct Sending<I, R> {
    inner: I,
    request: R,
    stated: Stated,
    /// When its waits end, if the pacer says so.
    ends: Option<u64>,
}

/// What the charge is settled by when the response is there, or nobody waits for it any longer.
enum Held<S: Store> {
    AtOnce { _acquire: Acquire<S> },
    InTurn { _ticket: Ticket<S> },
}

impl<I, S, R> Future for ResponseFuture<I, S, R>
where
    I: Service<R, Error: Into<BoxError>>,
    S: Store + Clone,
    R: OutgoingRequest,
{
    type Output = Result<I::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Waiting { turn, held } => match ready!(turn.as_mut().poll(cx)) {
                    Ok(ticket) => {
                        let mut sending = held.take().expect("a turn comes once");
                        sending.stated.shorten(&mut sending.request);
                        departure::leave();
                        let left = sending.ends.map(|ends| sending.stated.until(ends));
                        let (response, _) = during(left, || sending.inner.call(sending.request));
                        let held = Held::InTurn { _ticket: ticket };
                        this.state.set(State::Sent { response, held });
                    }
                    Err(PaceError::Store(error)) => return Poll::Ready(Err(error.into())),
                    Err(error) => return Poll::Ready(Err(error.into_refused().into())),
                },
                StateProj::Sent { response, .. } => return response.poll(cx).map_err(Into::into),
                StateProj::Failed { error } => {
                    let error =
                        error.take().expect("a future is not polled again once it is ready");
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl<I: fmt::Debug, S> fmt::Debug for Pace<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("inner", &self.inner)
            .field("pacer", &self.pacer)
            .finish_non_exhaustive()
    }
}

impl<I: Service<R>, S: Store, R> fmt::Debug for ResponseFuture<I, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
