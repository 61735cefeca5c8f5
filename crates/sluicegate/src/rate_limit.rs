use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Request, Response};
use sluicegate_core::adapter::{
    Answer, Charge, Course, Debit, Desk, Field, Hold, Known, Paid, Policy, Receipt, Refusal,
    Refused, Rest, is_stored_for_others,
};
use sluicegate_core::response::Degraded;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::{Store, Ticket};
use sluicegate_core::{Fields, Memory};
use tower::Service;

use crate::body::Body;
use crate::future::{Forward, ResponseFuture};
use crate::headers::{HttpHeaders, name};
use crate::held::{Held, Unsettled};
use crate::reply::HttpReply;
use crate::respond::{Problem, Respond, status};
use crate::upgrade::Upgrade;
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
        let mut charge = Charge::new();
        let Limited { rule, policy, .. } = &*self.limited;
        if let Err(missing) = rule.charge(&HttpView::<B, W>::new(&request), &mut charge) {
            let refusal = policy.keyless(missing);
            return ResponseFuture::refused(self.limited.answer(refusal, &request));
        }
        if charge.is_empty() {
            return ResponseFuture::running(self.inner.call(request), Paid::unknown(), None);
        }
        let place = policy.queue(&mut charge);
        let answer = policy.store.take(&charge);
        if let Some(outcome) = answer.at_once() {
            // The usual way, on which nothing large is moved about.
            policy.admitted(&charge, outcome);
            let paid = Paid::charged(Arc::clone(&self.limited), &mut charge, outcome);
            let upgrade = self.limited.mark(&paid, &mut request);
            return ResponseFuture::running(self.inner.call(request), paid, upgrade);
        }
        let outcome = match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(answer) => {
                let forward = Forward::new(self.take_ready(), request, &self.limited);
                return ResponseFuture::deciding(answer, charge, place, forward);
            }
        };
        match policy.judge(outcome, &charge, place) {
            Course::Serve(served) => {
                let paid = served.paid(&mut charge, || Arc::clone(&self.limited));
                let upgrade = self.limited.mark(&paid, &mut request);
                ResponseFuture::running(self.inner.call(request), paid, upgrade)
            }
            Course::Wait(wait, outcome, place) => {
                let ticket = Ticket::new(Arc::clone(&self.limited), charge, outcome);
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

/// What a layer was told, for its services and the requests under way.
pub(crate) struct Limited<R, S, P> {
    pub(crate) rule: R,
    pub(crate) policy: Policy<S>,
    pub(crate) respond: P,
    /// The item of each limit that is known in the `RateLimit-Policy` field.
    pub(crate) policies: Box<[HeaderValue]>,
}

impl<R, S: Store, P> Desk for Limited<R, S, P> {
    fn known(&self) -> &[Known] {
        &self.policy.known
    }

    fn hold(&self) -> Hold {
        self.policy.hold
    }
}

/// Requests are settled through what they hold of the layer: one pointer for each, not two.
impl<R, S: Store, P> Store for Limited<R, S, P> {
    type Future = S::Future;

    fn take(&self, charge: &Charge) -> Answer<S::Future> {
        self.policy.store.take(charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<S::Future> {
        self.policy.store.peek(charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<S::Future> {
        self.policy.store.reset(charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.policy.store.settle(debit, receipt, spent);
    }
}

impl<R, S, P> Limited<R, S, P> {
    /// Tells the handler what was decided, and makes sure that a connection that it upgrades keeps what is
    /// held.
    #[inline]
    pub(crate) fn mark<T: Desk, B>(
        &self,
        paid: &Paid<T>,
        request: &mut Request<B>,
    ) -> Option<Upgrade> {
        if self.policy.extensions {
            if let Some(decision) = paid.decision() {
                request.extensions_mut().insert(decision);
            }
        }
        if paid.is_degraded() {
            request.extensions_mut().insert(Degraded);
        }
        if paid.may_wait() { Upgrade::of(request) } else { None }
    }

    /// Makes the response of a refusal, and tells layers further out what happened here.
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
        self.policy.fields.write_refusal(&refusal, &mut HttpHeaders(response.headers_mut()));
        if refusal.gives_back() {
            response.extensions_mut().insert(Refused);
        }
        if let (Some(decision), true) = (refusal.into_decision(), self.policy.extensions) {
            response.extensions_mut().insert(decision);
        }
        response
    }

    /// Tells the client how it stands, and layers further out what was decided.
    fn tell<T: Desk, ResBody>(&self, paid: &Paid<T>, response: &mut Response<ResBody>) {
        let Policy { fields, extensions, .. } = self.policy;
        if fields == Fields::NONE && !extensions {
            return;
        }
        if fields.is_draft() && !extensions && self.tell_at_once(paid, response.headers_mut()) {
            return;
        }
        let Some(decision) = paid.decision() else { return };
        fields.write_served(&decision, &mut HttpHeaders(response.headers_mut()));
        if extensions {
            response.extensions_mut().insert(decision);
        }
    }

    /// The usual fields of the usual charge: half of that is written already.
    fn tell_at_once<T: Desk>(&self, paid: &Paid<T>, headers: &mut HeaderMap) -> bool {
        // Where the service has said when to come back, no window announced may end after that. Where others are served
        // the same response from a cache, they must not read how this client stands.
        let is_told =
            headers.contains_key(RETRY_AFTER) || is_stored_for_others(&HttpHeaders(&mut *headers));
        paid.tell(|at, line| {
            if let (Ok(line), false) = (HeaderValue::from_str(line), is_told) {
                headers.append(name(Field::RateLimitPolicy), self.policies[at].clone());
                headers.append(name(Field::RateLimit), line);
            }
        })
    }
}

/// The response is known: settles what it cost, and tells of it. What waits for the end of its body goes
/// along with that, or with the connection that it upgrades.
#[inline]
pub(crate) fn close<R, S, P, ResBody>(
    paid: &mut Paid<Arc<Limited<R, S, P>>>,
    upgrade: &mut Option<Upgrade>,
    mut response: Response<ResBody>,
) -> Response<Body<ResBody>>
where
    R: Send + Sync + 'static,
    S: Store + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    if paid.close(&HttpReply(&response)) {
        if let Some(limited) = paid.desk() {
            limited.tell(paid, &mut response);
        }
    }
    if paid.rest() == Rest::Nothing && upgrade.is_none() {
        return response.map(Body::new);
    }
    let held = (paid.rest() != Rest::Nothing).then(|| {
        let paid = mem::replace(paid, Paid::unknown());
        Box::new(Unsettled::new(paid, &response)) as Box<dyn Held>
    });
    hold(held, upgrade.take(), response)
}

/// Hands what is held to the connection that the response upgrades, else to its body.
pub(crate) fn hold<ResBody>(
    held: Option<Box<dyn Held>>,
    upgrade: Option<Upgrade>,
    response: Response<ResBody>,
) -> Response<Body<ResBody>> {
    match (upgrade, held) {
        (Some(upgrade), held) if upgrade.is_accepted(response.status()) => {
            upgrade.accept(held);
            response.map(Body::new)
        }
        (_, Some(held)) => response.map(|body| Body::holding(body, held)),
        (_, None) => response.map(Body::new),
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
