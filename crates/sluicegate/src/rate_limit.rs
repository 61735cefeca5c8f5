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

use crate::future::{Forward, ResponseFuture};
use crate::limited::Limited;
use crate::respond::{Problem, Respond};
use crate::view::{FrameworkBody, HttpView, Plain};

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub type RateLimit<I, R, S = Memory, P = Problem> = RateLimitFor<I, R, S, Plain, P>;

/// [`RateLimit`] for a [`Framework`](crate::adapter::Framework) `W`.
pub struct RateLimitFor<I, R, S, W, P> {
    inner: I,
    limited: Arc<Limited<R, S, P>>,
    framework: PhantomData<fn() -> W>,
}

impl<I, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    pub(crate) fn new(inner: I, limited: Limited<R, S, P>) -> Self {
        Self { inner, limited: Arc::new(limited), framework: PhantomData }
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
    R: for<'a> Rule<HttpView<'a, B, W>> + Send + Sync + 'static,
    S: Store + Send + Sync + 'static,
    W: FrameworkBody<ResBody>,
    P: Respond<B, ResBody> + Send + Sync + 'static,
{
    type Response = Response<W::Body>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B, R, S, P, W>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let limited = &self.limited;
        let Limited { rule, enforcer, .. } = &**limited;
        let handle = || Arc::clone(limited);
        let admitted = enforcer.admit_at_once(rule, &HttpView::<B, W>::new(&request), handle);
        let upgrade = match &admitted {
            Ok(paid) => limited.mark(paid, &mut request),
            Err(_) => None,
        };
        let undecided = match admitted {
            Err(undecided) => undecided,
            // The usual way, on which nothing large is moved about.
            Ok(paid) => return ResponseFuture::running(self.inner.call(request), paid, upgrade),
        };
        match enforcer.admit_otherwise(undecided, handle) {
            Admission::Proceed(paid) => {
                let upgrade = limited.mark(&paid, &mut request);
                ResponseFuture::running(self.inner.call(request), paid, upgrade)
            }
            Admission::Refuse(refusal) => {
                ResponseFuture::refused(limited.answer(refusal, &request))
            }
            Admission::Pending(pending) => {
                let forward = Forward::new(self.take_ready(), request, &self.limited);
                ResponseFuture::pending(pending, forward)
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
        Self {
            inner: self.inner.clone(),
            limited: Arc::clone(&self.limited),
            framework: PhantomData,
        }
    }
}

impl<I: fmt::Debug, R, S, W, P> fmt::Debug for RateLimitFor<I, R, S, W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
