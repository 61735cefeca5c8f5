use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::retry::future::ResponseFuture as TowerFuture;
use tower::util::MapErr;
use tower_service::Service;

use super::policy::{Attempts, Shared};
use crate::error::BoxError;
use crate::marker::{self, Retried};
use crate::outgoing::{OutgoingResponse, ReplayRequest};

/// A service whose requests are sent again after failures that may pass; made by [`RetryLayer`](super::RetryLayer).
#[derive(Debug, Clone)]
pub struct Retry<S> {
    inner: S,
    shared: Arc<Shared>,
}

type Boxed<S, E> = MapErr<S, fn(E) -> BoxError>;

impl<S> Retry<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S, R> Service<R> for Retry<S>
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
        let may_repeat = self.shared.repeatable.holds(&request);
        let is_nested = marker::mark(&mut request, Retried { may_repeat });
        let may_repeat = may_repeat && !is_nested;
        if !is_nested {
            self.shared.budget.deposit();
        }
        let attempts = Attempts::new(self.shared.clone(), may_repeat, request.timeout());
        // The one that is ready sends the first attempt.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        let into: fn(S::Error) -> BoxError = Into::into;
        let mut retry = tower::retry::Retry::new(attempts, MapErr::new(ready, into));
        ResponseFuture { inner: marker::inside::<Retried, _>(|| retry.call(request)) }
    }
}

pin_project! {
    /// The response to the last attempt.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
        R: ReplayRequest,
    {
        #[pin]
        inner: TowerFuture<Attempts, Boxed<S, S::Error>, R>,
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
    R: ReplayRequest,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        marker::inside::<Retried, _>(|| self.project().inner.poll(cx))
    }
}

impl<S, R> fmt::Debug for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
    R: ReplayRequest,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
