use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use tollgate_core::{
    Clock, Counters, Counts, Fields, Gate, KnownLimits, Memory, OnStoreError, Refusal, Rejection,
    Store,
};

use crate::respond::{Problem, RespondFn};
use crate::service::RateLimitFor;
use crate::view::Plain;

/// How long the layer waits for a store that is not in this process, unless told otherwise. Stores
/// keep deadlines of their own; this one holds for those that do not.
const DEADLINE: Duration = Duration::from_secs(1);

/// A tower layer that limits how fast requests may pass.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Ip, Limit, RateLimitLayer, Rejection};
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

/// [`RateLimitLayer`] for a [`Framework`](crate::Framework) `W`.
///
/// The rule `R` says what requests owe, the store `S` decides, and `P` answers those that are refused.
#[must_use]
pub struct RateLimitLayerFor<R, S, W, P> {
    rule: R,
    policy: Policy<S, P>,
    framework: PhantomData<fn() -> W>,
}

/// All that does not depend on the rule.
#[derive(Clone)]
pub(crate) struct Policy<S, P> {
    pub(crate) store: S,
    pub(crate) clock: Clock,
    pub(crate) respond: P,
    pub(crate) gate: Gate,
    pub(crate) fields: Fields,
    pub(crate) extensions: bool,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) deadline: Duration,
    pub(crate) counters: Arc<Counters>,
}

impl<R: KnownLimits, W> RateLimitLayerFor<R, Memory, W, Problem> {
    /// Limits requests by `rule`, counted in the memory of this process.
    pub fn new(rule: R) -> Self {
        let store = Memory::new();
        let policy = Policy {
            clock: store.clock(),
            store,
            respond: Problem,
            gate: Gate::default(),
            fields: Fields::default(),
            extensions: true,
            on_store_error: OnStoreError::default(),
            deadline: DEADLINE,
            counters: Arc::default(),
        };
        Self { rule, policy, framework: PhantomData }
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
        self.rule.each_limit(&mut |limit| {
            if let Err(reason) = store.check(limit) {
                panic!("the store cannot keep the limit `{limit}`: {reason}");
            }
        });
        self.with(|policy| Policy {
            clock: store.clock(),
            store,
            respond: policy.respond,
            gate: policy.gate,
            fields: policy.fields,
            extensions: policy.extensions,
            on_store_error: policy.on_store_error,
            deadline: policy.deadline,
            counters: policy.counters,
        })
    }
}

impl<R, S, W, P> RateLimitLayerFor<R, S, W, P> {
    /// What happens to requests that exceed a limit; they are [blocked](Rejection::block) by default.
    pub fn rejection(self, rejection: Rejection) -> Self {
        self.with(|policy| Policy { gate: Gate::new(rejection), ..policy })
    }

    /// Which header fields tell clients how they stand; [`Fields::DRAFT`] by default.
    pub fn fields(self, fields: Fields) -> Self {
        self.with(|policy| Policy { fields, ..policy })
    }

    /// Whether the [`Decision`](crate::Decision) is left in the extensions of requests, for handlers,
    /// and of responses, for outer layers. It is by default.
    pub fn extensions(self, extensions: bool) -> Self {
        self.with(|policy| Policy { extensions, ..policy })
    }

    /// What happens when the store fails, is full, or does not answer in time; requests are
    /// [admitted](OnStoreError::Admit) by default.
    pub fn on_store_error(self, on_store_error: OnStoreError) -> Self {
        self.with(|policy| Policy { on_store_error, ..policy })
    }

    /// How long to wait for a store that is not in this process; one second by default.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|policy| Policy { deadline, ..policy })
    }

    /// Makes the whole response of a refusal, seeing the request.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use tollgate::{Ip, Limit, RateLimitLayer, Refusal};
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

    /// Makes the response of a refusal by a [`Respond`](crate::Respond), such as [`Bare`](crate::Bare).
    pub fn respond<Q>(self, respond: Q) -> RateLimitLayerFor<R, S, W, Q> {
        self.with(|policy| Policy {
            respond,
            store: policy.store,
            clock: policy.clock,
            gate: policy.gate,
            fields: policy.fields,
            extensions: policy.extensions,
            on_store_error: policy.on_store_error,
            deadline: policy.deadline,
            counters: policy.counters,
        })
    }

    /// How often something other than passing at once happened, in this layer, its clones and the
    /// services that they wrap.
    pub fn counts(&self) -> Counts {
        self.policy.counters.read()
    }

    /// How many requests wait for their turn.
    pub fn waiting(&self) -> usize {
        self.policy.gate.waiting()
    }

    fn with<T, Q>(
        self,
        change: impl FnOnce(Policy<S, P>) -> Policy<T, Q>,
    ) -> RateLimitLayerFor<R, T, W, Q> {
        let policy = change(self.policy);
        RateLimitLayerFor { rule: self.rule, policy, framework: PhantomData }
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
        RateLimitFor::new(inner, self.rule.clone(), self.policy.clone())
    }
}

impl<R: Clone, S: Clone, W, P: Clone> Clone for RateLimitLayerFor<R, S, W, P> {
    fn clone(&self) -> Self {
        Self { rule: self.rule.clone(), policy: self.policy.clone(), framework: PhantomData }
    }
}

impl<R: fmt::Debug, S: fmt::Debug, W, P> fmt::Debug for RateLimitLayerFor<R, S, W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule)
            .field("store", &self.policy.store)
            .field("gate", &self.policy.gate)
            .finish_non_exhaustive()
    }
}
