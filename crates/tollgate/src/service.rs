use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate_core::{
    Answer, Charge, Course, Degraded, Memory, Paid, Policy, Refusal, Refused, Rule, Store,
};
use tower::Service;

use crate::future::{Forward, ResponseFuture};
use crate::headers::HttpHeaders;
use crate::reply::HttpReply;
use crate::respond::{Problem, Respond, status};
use crate::view::{Framework, HttpView, Plain};

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub type RateLimit<I, R, S = Memory, P = Problem> = RateLimitFor<I, R, S, Plain, P>;

/// [`RateLimit`] for a [`Framework`] `W`.
pub struct RateLimitFor<I, R, S, W, P> {
    inner: I,
    rule: Arc<R>,
    limited: Arc<Limited<S, P>>,
    framework: PhantomData<fn() -> W>,
}

impl<I, R, S, W, P> RateLimitFor<I, R, S, W, P> {
    pub(crate) fn new(inner: I, rule: R, limited: Limited<S, P>) -> Self {
        Self { inner, rule: Arc::new(rule), limited: Arc::new(limited), framework: PhantomData }
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let mut charge = Charge::new();
        let Limited { policy, .. } = &*self.limited;
        if let Err(missing) = self.rule.owes(&HttpView::<B, W>::new(&request), &mut charge) {
            let refusal = policy.keyless(missing);
            return ResponseFuture::refused(self.limited.answer(refusal, &request));
        }
        if charge.is_empty() {
            let future = self.inner.call(request);
            return ResponseFuture::running(future, Paid::unknown(), &self.limited);
        }
        let (charge, place) = policy.queue(charge);
        let decision = match policy.store.take(&charge) {
            Answer::Now(decision) => decision,
            Answer::Later(answer) => {
                let forward = Forward::new(self.take_ready(), request, &self.limited);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match policy.judge(decision, charge) {
            Course::Serve(paid) => {
                self.limited.mark(&paid, &mut request);
                ResponseFuture::running(self.inner.call(request), paid, &self.limited)
            }
            Course::Wait(wait, ticket) => {
                let forward = Forward::new(self.take_ready(), request, &self.limited);
                ResponseFuture::waiting(wait, ticket, place, forward)
            }
            Course::Refuse(refusal) => {
                ResponseFuture::refused(self.limited.answer(refusal, &request))
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

/// What requests under way need of the layer.
pub(crate) struct Limited<S, P> {
    pub(crate) policy: Policy<S>,
    pub(crate) respond: P,
}

impl<S, P> Limited<S, P> {
    /// Tells the handler what was decided.
    pub(crate) fn mark<B>(&self, paid: &Paid<S>, request: &mut Request<B>)
    where
        S: Store,
    {
        if let (Some(decision), true) = (paid.decision(), self.policy.extensions) {
            request.extensions_mut().insert(decision.clone());
        }
        if paid.is_degraded() {
            request.extensions_mut().insert(Degraded);
        }
    }

    /// Makes the response of a refusal, and tells layers further out what happened here.
    pub(crate) fn answer<B, ResBody>(
        &self,
        refusal: Refusal,
        request: &Request<B>,
    ) -> Response<ResBody>
    where
        P: Respond<B, ResBody>,
    {
        let mut response = self.respond.respond(&refusal, request);
        if let Refusal::Elsewhere(..) = refusal {
            // Whatever the operator's closure answers, what was asked for is a redirect.
            *response.status_mut() = status(&refusal);
        }
        self.policy.fields.write_refusal(&refusal, &mut HttpHeaders(response.headers_mut()));
        if refusal.gives_back() {
            response.extensions_mut().insert(Refused);
        }
        if let (Some(decision), true) = (refusal.into_decision(), self.policy.extensions) {
            response.extensions_mut().insert(decision);
        }
        response
    }

    /// The response is known: settles what it cost, and tells the client how it stands.
    pub(crate) fn close<ResBody>(&self, paid: Paid<S>, response: &mut Response<ResBody>)
    where
        S: Store,
    {
        let Some(decision) = paid.close(&HttpReply(&*response)) else { return };
        self.policy.fields.write_served(&decision, &mut HttpHeaders(response.headers_mut()));
        if self.policy.extensions {
            response.extensions_mut().insert(decision);
        }
    }
}

impl<I: Clone, R, S, W, P> Clone for RateLimitFor<I, R, S, W, P> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            rule: Arc::clone(&self.rule),
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
