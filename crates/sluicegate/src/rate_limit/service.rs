use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use sluicegate_core::Memory;
use sluicegate_core::adapter::Admission;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::Store;
use tower::Service;

use super::future::{Forward, ResponseFuture, State};
use crate::http_limit::HttpLimit;
use crate::respond::{Problem, Respond};
use crate::view::{Framework, FrameworkBody, HttpView, Plain};

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub type RateLimit<I, R, S = Memory, P = Problem> = RateLimitFor<I, R, S, Plain, P>;

/// [`RateLimit`] for a [`Framework`](crate::adapter::Framework) `W`.
pub struct RateLimitFor<I, R, S, W, P> {
    inner: I,
    inside: Arc<Inside<R, S, P>>,
    framework: PhantomData<fn() -> W>,
}

/// The rule of a layer, and its settings. Requests under way keep the settings only.
struct Inside<R, S, P> {
    rule: R,
    limit: Arc<HttpLimit<S, P>>,
}

impl<I, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    pub(crate) fn new(inner: I, rule: R, limit: Arc<HttpLimit<S, P>>) -> Self {
        Self { inner, inside: Arc::new(Inside { rule, limit }), framework: PhantomData }
    }

    /// The service inside.
    pub fn inner(&self) -> &I {
        &self.inner
    }

    /// The service inside.
    pub fn into_inner(self) -> I {
        self.inner
    }
}

impl<I, R, S, W, P, B, ResBody> Service<Request<B>> for RateLimitFor<I, R, S, W, P>
where
    I: Service<Request<B>, Response = Response<ResBody>> + Clone,
    R: for<'a> Rule<HttpView<'a, B, W>>,
    S: Store + Send + Sync + 'static,
    W: FrameworkBody<ResBody>,
    P: Respond<B, ResBody> + Send + Sync + 'static,
{
    type Response = Response<W::Body>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B, S, P, W>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFuture::at(self.decide(request))
    }
}

impl<I, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    /// Decides about a request, and calls the service if it goes ahead at once.
    ///
    /// This returns the innermost part of the future, so that it is written where it stays: futures are large, and
    /// moving what has just been written makes the processor wait.
    #[inline(never)]
    fn decide<B, ResBody>(&mut self, mut request: Request<B>) -> State<I, B, S, P>
    where
        I: Service<Request<B>, Response = Response<ResBody>> + Clone,
        R: for<'a> Rule<HttpView<'a, B, W>>,
        S: Store,
        W: Framework,
        P: Respond<B, ResBody>,
    {
        let Inside { rule, limit } = &*self.inside;
        let view = HttpView::<B, W>::new(&request);
        match limit.enforcer().admit(rule, &view, || Arc::clone(limit)) {
            Admission::Proceed(paid) => {
                let upgrade = limit.mark(&paid, &mut request);
                State::Running { future: self.inner.call(request), upgrade, paid }
            }
            Admission::Refuse(refusal) => {
                State::Refused { response: Some(limit.answer(refusal, &request)) }
            }
            Admission::Pending(pending) => {
                let limit = Arc::clone(limit);
                let forward = Forward::new(self.take_ready(), request, limit);
                State::Pending { pending, forward: Some(Box::new(forward)) }
            }
        }
    }
}

impl<I: Clone, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    /// Takes the service that was made ready along, and leaves a clone that has to be made ready first.
    fn take_ready(&mut self) -> I {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

impl<I: Clone, R, S, W, P> Clone for RateLimitFor<I, R, S, W, P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), inside: Arc::clone(&self.inside), framework: PhantomData }
    }
}

impl<I: fmt::Debug, R, S, W, P> fmt::Debug for RateLimitFor<I, R, S, W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
