use std::fmt;
use std::marker::PhantomData;

use http::{HeaderValue, Request, Response};
use sluicegate_core::Memory;
use sluicegate_core::adapter::{Enforcer, Known, Refusal};
use sluicegate_core::observe::Counts;
use sluicegate_core::rule::KnownLimits;
use sluicegate_core::store::Store;

use crate::limited::Limited;
use crate::rate_limit::RateLimitFor;
use crate::respond::{Problem, RespondFn, TooManyFn};
use crate::view::Plain;

/// A tower layer that limits how fast requests may pass. All that can be set stands with
/// [`RateLimitLayerFor`].
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Ip, Limit, RateLimitLayer, Rejection};
///
/// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer()))
///     .rejection(Rejection::queue(Duration::from_millis(200)));
/// # let _ = layer;
/// ```
///
/// Clones, and all services that it wraps, share one store. The service inside has to be `Clone` (as
/// axum's are; put a `tower::buffer::Buffer` around one that is not): a request that waits takes the
/// service that was made ready for it along.
pub type RateLimitLayer<R, S = Memory, P = Problem> = RateLimitLayerFor<R, S, Plain, P>;

/// [`RateLimitLayer`] for a [`Framework`](crate::adapter::Framework) `W`.
///
/// The rule `R` says what requests owe, the store `S` decides, and `P` answers those that are refused.
#[must_use]
pub struct RateLimitLayerFor<R, S, W, P> {
    rule: R,
    enforcer: Enforcer<S>,
    respond: P,
    framework: PhantomData<fn() -> W>,
}

impl<R: KnownLimits, W> RateLimitLayerFor<R, Memory, W, Problem> {
    /// Limits requests by `rule`, counted in the memory of this process.
    pub fn new(rule: R) -> Self {
        let enforcer = Enforcer::in_memory(&rule);
        Self { rule, enforcer, respond: Problem, framework: PhantomData }
    }
}

impl<R: KnownLimits, S, W, P> RateLimitLayerFor<R, S, W, P> {
    /// Counts in `store`. Layers on the same store share what is spent where limits of one name, or of
    /// the same numbers, meet on the same key.
    ///
    /// # Panics
    ///
    /// When the store cannot keep a limit of the rule.
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> RateLimitLayerFor<R, T, W, P> {
        let enforcer = self.enforcer.with_store(store, &self.rule);
        RateLimitLayerFor {
            rule: self.rule,
            enforcer,
            respond: self.respond,
            framework: PhantomData,
        }
    }
}

impl<R, S, W, P> RateLimitLayerFor<R, S, W, P> {
    sluicegate_core::adapter::settings!("sluicegate", "RateLimitLayer");

    /// Makes the response of every refusal, seeing the request: also of requests without a key (400 or 500),
    /// of those that can never be admitted (413, 422) and of a store that fails (503), so begin with the
    /// refusal's own [`status`](crate::adapter::Refusal::status). [`respond_to_too_many`](Self::respond_to_too_many)
    /// is for those alone that exceed a limit.
    ///
    /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
    /// `RateLimit` fields are added to it.
    ///
    /// ```
    /// use http::{HeaderValue, Request, Response};
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
    /// use sluicegate::adapter::Refusal;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_with(
    ///     |refusal: &Refusal, request: &Request<String>| {
    ///         let body = format!("{}: slow down\n", request.uri().path());
    ///         Response::builder().status(refusal.status()).body(body).unwrap()
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    pub fn respond_with<F, B, ResBody>(self, respond: F) -> RateLimitLayerFor<R, S, W, RespondFn<F>>
    where
        F: Fn(&Refusal, &Request<B>) -> Response<ResBody>,
    {
        self.respond(RespondFn(respond))
    }

    /// Makes the response of requests that exceed a limit, seeing the request. All other refusals are answered
    /// as before: by a problem document, or by what [`respond`](Self::respond) was given.
    ///
    /// The same fields are added as by [`respond_with`](Self::respond_with).
    ///
    /// ```
    /// use http::{Request, Response};
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
    /// use sluicegate::adapter::Refusal;
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_to_too_many(
    ///     |refusal: &Refusal, _: &Request<String>| {
    ///         let seconds = refusal.retry_after().unwrap_or(1);
    ///         let body = format!("slow down: try again in {seconds} s\n");
    ///         Response::builder().status(429).body(body).unwrap()
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    pub fn respond_to_too_many<F, B, ResBody>(
        self,
        respond: F,
    ) -> RateLimitLayerFor<R, S, W, TooManyFn<F, P>>
    where
        F: Fn(&Refusal, &Request<B>) -> Response<ResBody>,
    {
        self.map_respond(|others| TooManyFn::new(respond, others))
    }

    /// Makes the response of a refusal by a [`Respond`](crate::response::Respond), such as [`Bare`](crate::response::Bare).
    pub fn respond<Q>(self, respond: Q) -> RateLimitLayerFor<R, S, W, Q> {
        self.map_respond(|_| respond)
    }

    /// Makes the response of a refusal by what `respond` makes of the present [`Respond`](crate::response::Respond).
    pub fn map_respond<Q>(self, respond: impl FnOnce(P) -> Q) -> RateLimitLayerFor<R, S, W, Q> {
        let Self { rule, enforcer, respond: present, framework } = self;
        RateLimitLayerFor { rule, enforcer, respond: respond(present), framework }
    }

    pub(crate) fn erased<T, U: Store, Q>(
        self,
        rule: impl FnOnce(R) -> T,
        store: impl FnOnce(S) -> U,
        respond: impl FnOnce(P) -> Q,
    ) -> RateLimitLayerFor<T, U, W, Q> {
        let Self { rule: present, enforcer, respond: others, framework } = self;
        let enforcer = enforcer.map_store(store);
        RateLimitLayerFor { rule: rule(present), enforcer, respond: respond(others), framework }
    }

    /// How often something other than passing at once happened, in this layer, its clones and the
    /// services that they wrap.
    pub fn counts(&self) -> Counts {
        self.enforcer.observer.counters.read()
    }

    /// How many requests wait for their turn.
    pub fn waiting(&self) -> usize {
        self.enforcer.gate.waiting()
    }

    fn with(mut self, change: impl FnOnce(&mut Enforcer<S>)) -> Self {
        change(&mut self.enforcer);
        self
    }
}

impl<I, R, S, W, P> tower_layer::Layer<I> for RateLimitLayerFor<R, S, W, P>
where
    R: Clone,
    S: Clone,
    P: Clone,
{
    type Service = RateLimitFor<I, R, S, W, P>;

    fn layer(&self, inner: I) -> Self::Service {
        let (rule, enforcer) = (self.rule.clone(), self.enforcer.clone());
        let policies = enforcer.known.iter().map(policy_item).collect();
        RateLimitFor::new(
            inner,
            Limited { rule, enforcer, respond: self.respond.clone(), policies },
        )
    }
}

/// Names of limits are visible ASCII, so there always is one.
fn policy_item(known: &Known) -> HeaderValue {
    HeaderValue::from_str(known.policy()).unwrap_or(HeaderValue::from_static(""))
}

impl<R: Clone, S: Clone, W, P: Clone> Clone for RateLimitLayerFor<R, S, W, P> {
    fn clone(&self) -> Self {
        Self {
            rule: self.rule.clone(),
            enforcer: self.enforcer.clone(),
            respond: self.respond.clone(),
            framework: PhantomData,
        }
    }
}

impl<R: fmt::Debug, S: fmt::Debug, W, P> fmt::Debug for RateLimitLayerFor<R, S, W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule)
            .field("store", &self.enforcer.store)
            .field("gate", &self.enforcer.gate)
            .finish_non_exhaustive()
    }
}
