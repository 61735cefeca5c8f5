use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate_core::{Answer, Charge, Memory, Missing, Refusal, Rule, Store};
use tower::Service;

use crate::future::{Forward, ResponseFuture};
use crate::judge::{Judged, Paid};
use crate::layer::Policy;
use crate::respond::{Problem, Respond};
use crate::view::{Framework, HttpView, Plain};

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub type RateLimit<I, R, S = Memory, P = Problem> = RateLimitFor<I, R, S, Plain, P>;

/// [`RateLimit`] for a [`Framework`] `W`.
pub struct RateLimitFor<I, R, S, W, P> {
    inner: I,
    rule: Arc<R>,
    policy: Arc<Policy<S, P>>,
    framework: PhantomData<fn() -> W>,
}

impl<I, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    pub(crate) fn new(inner: I, rule: R, policy: Policy<S, P>) -> Self {
        Self { inner, rule: Arc::new(rule), policy: Arc::new(policy), framework: PhantomData }
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
    S: Store + Clone,
    W: Framework,
    P: Respond<B, ResBody>,
{
    type Response = Response<ResBody>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B, S, P>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut charge = Charge::new();
        if let Err(missing) = self.rule.owes(&HttpView::<B, W>::new(&request), &mut charge) {
            return ResponseFuture::refused(self.policy.refuse_keyless(missing, &request));
        }
        if charge.is_empty() {
            return ResponseFuture::running(self.inner.call(request), Paid::Unknown, &self.policy);
        }
        let place = self.policy.gate.place();
        if let Some((_, patience)) = &place {
            charge = charge.patient(*patience);
        }
        let place = place.map(|(place, _)| place);
        let decision = match self.policy.store.take(&charge) {
            Answer::Now(decision) => decision,
            Answer::Later(answer) => {
                let forward = Forward::new(self.take_ready(), request, &self.policy);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match self.policy.judge(decision, charge, request) {
            Judged::Forward(request, paid) => {
                ResponseFuture::running(self.inner.call(request), paid, &self.policy)
            }
            Judged::Wait(request, wait, ticket) => {
                let forward = Forward::new(self.take_ready(), request, &self.policy);
                ResponseFuture::waiting(wait, ticket, place, forward)
            }
            Judged::Answer(response) => ResponseFuture::refused(response),
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

impl<S, P> Policy<S, P> {
    fn refuse_keyless<B, ResBody>(
        &self,
        missing: Missing,
        request: &Request<B>,
    ) -> Response<ResBody>
    where
        P: Respond<B, ResBody>,
    {
        self.counters.keyless.add();
        if missing.is_server() {
            tracing::error!("{missing}");
        }
        self.refuse(Refusal::Missing(missing), request)
    }
}

impl<I: Clone, R, S, W, P> Clone for RateLimitFor<I, R, S, W, P> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            rule: Arc::clone(&self.rule),
            policy: Arc::clone(&self.policy),
            framework: PhantomData,
        }
    }
}

impl<I: fmt::Debug, R, S, W, P> fmt::Debug for RateLimitFor<I, R, S, W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
