use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use sluicegate_core::adapter::{AnyDialect, Enforcer, Hold, Refusal, client_error};
use sluicegate_core::observe::{Counts, ShowKeys, Watch};
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::{BoxStore, OnStoreError, Store};
use sluicegate_core::{Fields, Memory, Rejection};
use tower_layer::Layer;

use super::service::RateLimitFor;
use crate::boxed::{BoxRespond, BoxRule};
use crate::http_limit::HttpLimit;
use crate::respond::{Problem, Respond, RespondFn, TooManyFn};
use crate::view::{Framework, HttpView, Plain};

/// A tower layer that limits how fast requests may pass.
///
/// The rule `R` decides what requests are charged, the store `S` keeps the counts, and `P` makes the answers to
/// refused requests.
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
/// The rule and its key make the type long. [`boxed`](RateLimitLayerFor::boxed) makes a
/// [`BoxRateLimitLayer`](crate::service::BoxRateLimitLayer), which a struct can hold and a function can return.
///
/// Clones share one store with each other and with all services that they wrap. The inner service has to be `Clone`
/// (axum's are; put a `tower::buffer::Buffer` around one that is not), because a waiting request takes along the
/// service that was made ready for it.
pub type RateLimitLayer<R, S = Memory, P = Problem> = RateLimitLayerFor<R, S, P, Plain>;

/// [`RateLimitLayer`] for a [`Framework`](crate::adapter::Framework) `W`.
///
/// The framework decides what view a rule has of a request, and of what type the bodies of responses become. Each
/// adapter has an alias `RateLimitLayer<R, S, P>` that fixes it.
#[must_use]
pub struct RateLimitLayerFor<R, S, P, W> {
    rule: R,
    enforcer: Enforcer<S>,
    respond: P,
    framework: PhantomData<fn() -> W>,
}

impl<R: KnownLimits, W: Framework> RateLimitLayerFor<R, Memory, W::Respond, W> {
    /// Limits requests by `rule`, counted in the memory of this process.
    ///
    /// # Panics
    ///
    /// When a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(rule: R) -> Self {
        let enforcer = Enforcer::in_memory(&rule);
        Self { rule, enforcer, respond: W::Respond::default(), framework: PhantomData }
    }
}

/// Where and how it counts.
impl<R, S, P, W> RateLimitLayerFor<R, S, P, W> {
    /// Counts in `store`. Layers on one store share what is spent on a key if their limits have the same
    /// name, or no name and the same numbers.
    ///
    /// # Panics
    ///
    /// When the store cannot keep a limit of the rule.
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> RateLimitLayerFor<R, T, P, W>
    where
        R: KnownLimits,
    {
        let Self { rule, enforcer, respond, framework } = self;
        let enforcer = enforcer.with_store(store, &rule);
        RateLimitLayerFor { rule, enforcer, respond, framework }
    }

    /// What happens when the store fails, is full, or does not answer in time; requests are
    /// [admitted](OnStoreError::Admit) by default.
    pub fn on_store_error(self, on_store_error: OnStoreError) -> Self {
        self.with(|enforcer| enforcer.on_store_error = on_store_error)
    }

    /// How long to wait for a store that is not in this process; one second by default.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|enforcer| enforcer.deadline = Some(deadline))
    }

    /// Until when a request holds its places of [`Limit::concurrent`](crate::Limit::concurrent), and when an
    /// answer whose cost is [running](crate::cost::RunningCost) is settled: by default when the response's body
    /// has ended, or the upgraded connection has closed.
    ///
    /// ```
    /// use sluicegate::adapter::Hold;
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
    ///
    /// // Five requests being handled. Responses that are still being sent to slow clients do not count.
    /// let limit = RateLimitLayer::new(Limit::concurrent(5).by(Ip::peer())).hold_until(Hold::Head);
    /// # let _ = limit;
    /// ```
    pub fn hold_until(self, hold: Hold) -> Self {
        self.with(|enforcer| enforcer.hold = hold)
    }

    /// Changes any setting of how requests are admitted.
    pub fn with(mut self, change: impl FnOnce(&mut Enforcer<S>)) -> Self {
        change(&mut self.enforcer);
        self
    }
}

/// What refused requests get.
impl<R, S, P, W> RateLimitLayerFor<R, S, P, W> {
    /// What happens to requests that exceed a limit; they are [blocked](Rejection::block) by default.
    pub fn rejection(self, rejection: Rejection) -> Self {
        self.with(|enforcer| enforcer.gate = enforcer.gate.with(rejection))
    }

    /// The status for a request that can never be admitted, because it costs more than a limit ever admits (see
    /// [`Refusal::NeverFits`]). By default it is `413 Content Too Large` if the cost is the length of the body, and
    /// `422 Unprocessable Content` otherwise.
    ///
    /// # Panics
    ///
    /// If the status is not from 400 to 499, or is 429, which invites the client to try again.
    #[track_caller]
    pub fn never_fits_status(self, status: u16) -> Self {
        let never_fits_status = client_error(status);
        self.with(|enforcer| enforcer.never_fits_status = never_fits_status)
    }

    /// Makes the response of a refusal by a [`Respond`], such as [`Bare`](crate::response::Bare).
    pub fn respond<Q>(self, respond: Q) -> RateLimitLayerFor<R, S, Q, W> {
        self.map_respond(|_| respond)
    }

    /// Makes the response of every refusal; the closure gets the request. This includes requests without a
    /// key (400 or 500), requests that can never be admitted (413, 422) and a failing store (503), so begin
    /// with the refusal's own [`status`](Refusal::status).
    /// [`respond_to_too_many`](Self::respond_to_too_many) is only for requests that exceed a limit.
    ///
    /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
    /// `RateLimit` fields are added to it.
    ///
    /// The closure returns an [`http::Response`]; in axum, anything that implements `IntoResponse`.
    ///
    /// ```
    /// use http::{HeaderValue, Request, Response};
    /// use sluicegate::adapter::Refusal;
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_with(
    ///     |refusal: &Refusal, request: &Request<String>| {
    ///         let body = format!("{}: slow down\n", request.uri().path());
    ///         Response::builder().status(refusal.status()).body(body).unwrap()
    ///     },
    /// );
    /// # let _ = layer;
    /// ```
    pub fn respond_with<F, B, T>(self, respond: F) -> RateLimitLayerFor<R, S, RespondFn<F, W>, W>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
    {
        self.respond(RespondFn::of_framework(respond))
    }

    /// Makes the response of requests that exceed a limit; the closure gets the request. All other refusals
    /// are answered as before: by [`respond`](Self::respond), or the default.
    ///
    /// The same fields are added as by [`respond_with`](Self::respond_with).
    ///
    /// ```
    /// use http::{Request, Response};
    /// use sluicegate::adapter::Refusal;
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
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
    pub fn respond_to_too_many<F, B, T>(
        self,
        respond: F,
    ) -> RateLimitLayerFor<R, S, TooManyFn<RespondFn<F, W>, P>, W>
    where
        F: Fn(&Refusal, &Request<B>) -> T,
    {
        self.map_respond(|others| TooManyFn::new(RespondFn::of_framework(respond), others))
    }

    /// Makes the responses of refusals with what `respond` makes of the present [`Respond`].
    fn map_respond<Q>(self, respond: impl FnOnce(P) -> Q) -> RateLimitLayerFor<R, S, Q, W> {
        let Self { rule, enforcer, respond: present, framework } = self;
        RateLimitLayerFor { rule, enforcer, respond: respond(present), framework }
    }
}

/// What clients, handlers and operators learn.
impl<R, S, P, W> RateLimitLayerFor<R, S, P, W> {
    /// Which header fields tell clients what they have left; [`Fields::DRAFT`] by default.
    pub fn fields(self, fields: Fields) -> Self {
        self.with(|enforcer| enforcer.fields = fields)
    }

    /// Writes the header fields of an API too, for its clients, such as those of `sluicegate-llm`. `None` changes
    /// nothing.
    ///
    /// # Panics
    ///
    /// If the dialect tells of no policy, or of one that none of the rule's limits has.
    #[track_caller]
    pub fn dialect(self, dialect: impl Into<AnyDialect>) -> Self {
        let dialect = dialect.into();
        self.with(|enforcer| enforcer.speak(dialect))
    }

    /// Whether the decision is left in the extensions of requests, for handlers, and of responses, for outer layers, as
    /// a [`LazyDecision`](crate::response::LazyDecision). By default it is left in requests, and in responses only if a
    /// limit is exceeded.
    pub fn extensions(self, extensions: bool) -> Self {
        self.with(|enforcer| enforcer.extensions = extensions.into())
    }

    /// Reports refused keys to `watch`: a [`Watch`] shows those that are refused most.
    ///
    /// ```
    /// use sluicegate::observe::Watch;
    /// use sluicegate::{Ip, Limit, RateLimitLayer};
    ///
    /// let watch = Watch::new(32);
    /// let limit = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).watch(&watch);
    /// assert!(watch.snapshot().is_empty());
    /// # let _ = limit;
    /// ```
    pub fn watch(self, watch: &Watch) -> Self {
        self.with(|enforcer| enforcer.observer.watch = Some(watch.clone()))
    }

    /// What events show of the keys of requests, in a field `who`; [nothing](ShowKeys::Hidden) by default.
    pub fn show_keys(self, show_keys: ShowKeys) -> Self {
        self.with(|enforcer| enforcer.observer.show_keys = show_keys)
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
}

impl<R, S, P, W> RateLimitLayerFor<R, S, P, W> {
    /// The same layer, with a type that does not depend on its rule, store and responder.
    ///
    /// ```
    /// use sluicegate::service::BoxRateLimitLayer;
    /// use sluicegate::{Global, Ip, Limit, RateLimitLayer};
    ///
    /// struct Limits {
    ///     api: BoxRateLimitLayer<String, String>,
    /// }
    ///
    /// fn limits(by_client: bool) -> Limits {
    ///     let limit = Limit::per_minute(100);
    ///     let api = match by_client {
    ///         true => RateLimitLayer::new(limit.by(Ip::peer())).boxed(),
    ///         false => RateLimitLayer::new(limit.by(Global)).boxed(),
    ///     };
    ///     Limits { api }
    /// }
    /// # let _ = limits(true).api;
    /// ```
    pub fn boxed<B, ResBody>(
        self,
    ) -> RateLimitLayerFor<BoxRule<B, W>, BoxStore, BoxRespond<B, ResBody>, W>
    where
        W: Framework,
        R: for<'a> Rule<HttpView<'a, B, W>> + Send + Sync + 'static,
        S: Store<Future: Send + 'static> + Send + Sync + 'static,
        P: Respond<B, ResBody> + Send + Sync + 'static,
    {
        RateLimitLayerFor {
            rule: BoxRule::new(self.rule),
            enforcer: self.enforcer.map_store(BoxStore::new),
            respond: BoxRespond::new(self.respond),
            framework: PhantomData,
        }
    }
}

impl<I, R: Clone, S: Clone, P: Clone, W> Layer<I> for RateLimitLayerFor<R, S, P, W> {
    type Service = RateLimitFor<I, R, S, W, P>;

    fn layer(&self, inner: I) -> Self::Service {
        let Self { rule, enforcer, respond, .. } = self.clone();
        RateLimitFor::new(inner, rule, Arc::new(HttpLimit::new(enforcer, respond)))
    }
}

impl<R: Clone, S: Clone, P: Clone, W> Clone for RateLimitLayerFor<R, S, P, W> {
    fn clone(&self) -> Self {
        Self {
            rule: self.rule.clone(),
            enforcer: self.enforcer.clone(),
            respond: self.respond.clone(),
            framework: PhantomData,
        }
    }
}

impl<R: fmt::Debug, S: fmt::Debug, P, W> fmt::Debug for RateLimitLayerFor<R, S, P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule)
            .field("store", &self.enforcer.store)
            .field("gate", &self.enforcer.gate)
            .finish_non_exhaustive()
    }
}
