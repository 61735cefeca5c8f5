use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::HeaderValue;
use http::{Request, Response, StatusCode};
use sluicegate_core::Memory;
use sluicegate_core::adapter::{self, Admission, AsEnforcer, Enforcer, Refusal, Rest, Unsettled};
use sluicegate_core::rule::Rule;
use sluicegate_core::store::Store;
use tower::Service;

use crate::body::Body;
use crate::future::{Forward, ResponseFuture};
use crate::headers::{HttpExtensions, HttpHead};
use crate::held::{Held, find_line};
use crate::reply::HttpReply;
use crate::respond::{Problem, Respond, status};
use crate::sleep::TokioTimer;
use crate::upgrade::Upgrade;
use crate::view::{FrameworkBody, HttpView, Plain};

/// What a request has paid at a layer.
pub(crate) type Paid<R, S, P> = adapter::Paid<Arc<Limited<R, S, P>>>;

/// A request that waits for a layer's store, or for its turn.
pub(crate) type Pending<R, S, P> = adapter::Pending<Arc<Limited<R, S, P>>, TokioTimer>;

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
        let undecided = match admitted {
            Err(undecided) => undecided,
            Ok(paid) => {
                // The usual way, on which nothing large is moved about.
                let upgrade = limited.mark(&paid, &mut request);
                return ResponseFuture::running(self.inner.call(request), paid, upgrade);
            }
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

/// The settings of a layer, for its services and the requests under way.
pub(crate) struct Limited<R, S, P> {
    pub(crate) rule: R,
    pub(crate) enforcer: Enforcer<S>,
    pub(crate) respond: P,
    /// The item of each known limit in the `RateLimit-Policy` field.
    pub(crate) policies: Box<[HeaderValue]>,
}

impl<R, S: Store, P> AsEnforcer for Limited<R, S, P> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<S> {
        &self.enforcer
    }
}

impl<R, S, P> Limited<R, S, P> {
    /// Tells the handler of the decision, and makes sure that a connection that it upgrades keeps what is held.
    #[inline]
    pub(crate) fn mark<E: AsEnforcer, B>(
        &self,
        paid: &adapter::Paid<E>,
        request: &mut Request<B>,
    ) -> Option<Upgrade> {
        self.enforcer.mark(paid, &mut HttpExtensions(request.extensions_mut()));
        if paid.may_wait() { Upgrade::of(request) } else { None }
    }

    /// Makes the response of a refusal.
    pub(crate) fn answer<B, ResBody>(
        &self,
        refusal: Refusal,
        request: &Request<B>,
    ) -> Response<Body<ResBody>>
    where
        P: Respond<B, ResBody>,
    {
        let mut response = self.respond.respond(&refusal, request);
        let is_elsewhere = matches!(refusal, Refusal::Elsewhere(..));
        if is_elsewhere && self.respond.redirects(request) {
            // Whatever the operator's closure answers, what was asked for is a redirect.
            *response.status_mut() = status(&refusal);
        }
        self.enforcer.write_refusal(refusal, &mut HttpHead::of(&mut response, &self.policies));
        response
    }
}

/// Settles what the response cost, and tells the client. Returns what the body holds: what waits for its end. Where the
/// response upgrades the connection, that holds it instead.
///
/// The response stays where the service has written it: moving what has just been written makes the processor wait.
#[inline]
pub(crate) fn close<R, S, P, ResBody>(
    paid: &mut Paid<R, S, P>,
    upgrade: &mut Option<Upgrade>,
    response: &mut Response<ResBody>,
) -> Option<Box<dyn Held>>
where
    R: Send + Sync + 'static,
    S: Store + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    if paid.close(&HttpReply(response)) {
        if let Some(limited) = paid.enforcer() {
            let mut head = HttpHead::of(response, &limited.policies);
            limited.enforcer.write_served(paid, &mut head);
        }
    }
    if paid.rest() == Rest::Nothing && upgrade.is_none() {
        return None;
    }
    let held = (paid.rest() != Rest::Nothing).then(|| {
        let paid = mem::replace(paid, Paid::nothing());
        let reply = HttpReply(response);
        let headers = || response.headers().clone();
        Box::new(Unsettled::new(paid, &reply, || reply.running(), headers, find_line))
            as Box<dyn Held>
    });
    hold(held, upgrade.take(), response.status())
}

/// Hands what is held to the connection that a response of `status` upgrades. Returns it where the body holds it.
pub(crate) fn hold(
    held: Option<Box<dyn Held>>,
    upgrade: Option<Upgrade>,
    status: StatusCode,
) -> Option<Box<dyn Held>> {
    match upgrade {
        Some(upgrade) if upgrade.is_accepted(status) => {
            upgrade.accept(held);
            None
        }
        _ => held,
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
