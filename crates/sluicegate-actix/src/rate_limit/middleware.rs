use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::EitherBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::HeaderValue;
use actix_web::{Error, HttpRequest, HttpResponse};
use sluicegate_core::adapter::{AnyDialect, Enforcer, Hold, KnownLimit, Refusal, client_error};
use sluicegate_core::observe::{Counts, ShowKeys, Watch};
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::{BoxStore, OnStoreError, Store};
use sluicegate_core::{Fields, Memory, Rejection};

use super::service::RateLimitService;
use crate::body::Body;
use crate::boxed::BoxRule;
use crate::limited::Limited;
use crate::respond::{Respond, in_dialect};
use crate::shared::{Shared, Site};
use crate::view::RequestView;

/// A middleware that limits how fast requests may pass: for
/// [`App::wrap`](actix_web::App::wrap), [`Scope::wrap`](actix_web::Scope::wrap) and
/// [`Resource::wrap`](actix_web::Resource::wrap).
///
/// ```
/// use std::time::Duration;
/// use actix_web::{App, web};
/// use sluicegate_actix::{Ip, Limit, RateLimit, Rejection};
///
/// let limit = RateLimit::new(Limit::per_second(10).by(Ip::peer()))
///     .rejection(Rejection::queue(Duration::from_millis(200)));
/// let app = App::new().service(web::scope("/api").wrap(limit));
/// # let _ = app;
/// ```
///
/// The response's body becomes an [`EitherBody`]: on the left the [`Body`] that the service inside
/// answers with, on the right a refusal. An error that the service inside returns is passed on; rules that account by
/// response see the status that it will be answered with.
///
/// # One limiter for all workers
///
/// actix-web calls the closure given to `HttpServer::new` once for each worker and address. Values that
/// [`new`](Self::new) makes at one place in the source, for one type of rule and under one
/// [`System`](actix_web::rt::System), are still one limiter: they share the default store, the bound on waiting
/// requests, and the counters, as long as one of them is in use. So do clones, which are the other way to write it,
/// and leave you a handle to [`counts`](Self::counts):
///
/// ```no_run
/// use actix_web::{App, HttpServer};
/// use sluicegate_actix::{Ip, Limit, RateLimit};
///
/// let limit = RateLimit::new(Limit::per_second(10).by(Ip::peer()));
/// let handle = limit.clone();
/// let server = HttpServer::new(move || App::new().wrap(limit.clone()));
/// # let _ = (handle, server);
/// ```
///
/// Three things follow from that:
///
/// - A function of yours that makes the limiters of two scopes is one place: the scopes share what is spent, unless
///   their limits differ in name or numbers. Give them different names.
/// - Tests under `#[actix_web::test]` have a `System` each, so they share nothing. Tests under
///   `#[tokio::test]` have none, and do share; so do two servers of one process on plain tokio. Give
///   them a [`store`](Self::store) of their own.
/// - A store given to [`store`](Self::store) is used as it is: make it outside of the closure, and
///   clone it into it.
///
/// # Naming the type
///
/// A rule has a long type. [`boxed`](Self::boxed) makes a [`BoxRateLimit`](crate::service::BoxRateLimit), which a struct
/// can hold and a function can return.
#[must_use]
#[derive(Clone)]
pub struct RateLimit<R, S = Memory> {
    rule: R,
    limited: Limited<S>,
}

impl<R: KnownLimits + 'static> RateLimit<R> {
    /// Limits requests by `rule`, counted in the memory of this process, by all workers together.
    ///
    /// # Panics
    ///
    /// If a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(rule: R) -> Self {
        let Shared { memory, tally } = Site::of_caller::<R>().shared();
        let mut enforcer = Enforcer::new(Memory::clone(&memory), &rule);
        enforcer.gate = tally.gate.clone();
        enforcer.observer.counters = Arc::clone(&tally.counters);
        let respond = Respond::default();
        let policies = enforcer.known.iter().map(policy_item).collect();
        let _memory = Some(memory);
        Self { rule, limited: Limited { enforcer, respond, policies, _tally: tally, _memory } }
    }
}

/// Names of limits are visible ASCII, so there always is one.
fn policy_item(known: &KnownLimit) -> HeaderValue {
    match known.lasting_policy() {
        Some(policy) => HeaderValue::from_static(policy),
        None => HeaderValue::from_str(known.policy()).unwrap_or(HeaderValue::from_static("")),
    }
}

impl<R: KnownLimits, S> RateLimit<R, S> {
    /// Counts in `store`. Limits on one store share what is spent on a key if they have the same name, or no name and
    /// the same numbers.
    ///
    /// Workers share it only if it is made once, outside of the closure that makes the app.
    ///
    /// # Panics
    ///
    /// When the store cannot keep a limit of the rule.
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> RateLimit<R, T> {
        let Limited { enforcer, respond, policies, _tally, _memory } = self.limited;
        let enforcer = enforcer.with_store(store, &self.rule);
        let limited = Limited { enforcer, respond, policies, _tally, _memory: None };
        RateLimit { rule: self.rule, limited }
    }
}

impl<R, S> RateLimit<R, S>
where
    R: for<'a> Rule<RequestView<'a>> + Send + Sync + 'static,
    S: Store<Future: Send + 'static> + Send + Sync + 'static,
{
    /// The same middleware, with a type that does not depend on its rule and store: see
    /// [`BoxRateLimit`](crate::service::BoxRateLimit).
    pub fn boxed(self) -> RateLimit<BoxRule, BoxStore> {
        let Limited { enforcer, respond, policies, _tally, _memory } = self.limited;
        let enforcer = enforcer.map_store(BoxStore::new);
        let limited = Limited { enforcer, respond, policies, _tally, _memory };
        RateLimit { rule: BoxRule::new(self.rule), limited }
    }
}

impl<R, S> RateLimit<R, S> {
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
    /// use sluicegate_actix::adapter::Hold;
    /// use sluicegate_actix::{Ip, Limit, RateLimit};
    ///
    /// // Five requests being handled. Responses that are still being sent to slow clients do not count.
    /// let limit = RateLimit::new(Limit::concurrent(5).by(Ip::peer())).hold_until(Hold::Head);
    /// # let _ = limit;
    /// ```
    pub fn hold_until(self, hold: Hold) -> Self {
        self.with(|enforcer| enforcer.hold = hold)
    }

    /// What happens to requests that exceed a limit; they are [blocked](Rejection::block) by default.
    pub fn rejection(self, rejection: Rejection) -> Self {
        // This keeps the gate: all workers together have one queue.
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

    /// Whether the decision is left in the extensions of requests, for handlers, and of responses, for outer
    /// middleware, as a [`LazyDecision`](crate::response::LazyDecision). By default it is left in requests, and in
    /// responses only if a limit is exceeded.
    pub fn extensions(self, extensions: bool) -> Self {
        self.with(|enforcer| enforcer.extensions = extensions.into())
    }

    /// Reports refused keys to `watch`: a [`Watch`] shows those that are refused most.
    pub fn watch(self, watch: &Watch) -> Self {
        self.with(|enforcer| enforcer.observer.watch = Some(watch.clone()))
    }

    /// What events show of the keys of requests, in a field `who`; [nothing](ShowKeys::Hidden) by default.
    pub fn show_keys(self, show_keys: ShowKeys) -> Self {
        self.with(|enforcer| enforcer.observer.show_keys = show_keys)
    }

    /// Answers every refusal with an error in the form of an API; see
    /// [`Dialect::error_body`](crate::adapter::Dialect::error_body). `None` changes nothing.
    pub fn respond(self, dialect: impl Into<AnyDialect>) -> Self {
        let Some(dialect) = dialect.into().get().cloned() else { return self };
        let respond = Respond::with(move |refusal, _| in_dialect(&*dialect, refusal));
        Self { limited: Limited { respond, ..self.limited }, ..self }
    }

    /// Makes the response of every refusal; the closure gets the request. This includes requests without a key (400
    /// or 500), requests that can never be admitted (413, 422) and a failing store (503), so begin with the refusal's
    /// own [`status`](crate::adapter::Refusal::status). [`respond_to_too_many`](Self::respond_to_too_many) is only
    /// for requests that exceed a limit.
    ///
    /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
    /// `RateLimit` fields are added to it.
    ///
    /// ```
    /// use actix_web::http::StatusCode;
    /// use actix_web::{HttpRequest, HttpResponse};
    /// use sluicegate_actix::{Ip, Limit, RateLimit};
    /// use sluicegate_actix::adapter::Refusal;
    ///
    /// let limit = RateLimit::new(Limit::per_second(10).by(Ip::peer())).respond_with(
    ///     |refusal: &Refusal, request: &HttpRequest| {
    ///         let status = StatusCode::from_u16(refusal.status()).expect("a valid status");
    ///         HttpResponse::build(status).body(format!("{}: {status}\n", request.path()))
    ///     },
    /// );
    /// # let _ = limit;
    /// ```
    pub fn respond_with(
        self,
        respond: impl Fn(&Refusal, &HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        let respond = Respond::with(respond);
        Self { limited: Limited { respond, ..self.limited }, ..self }
    }

    /// Makes the response of requests that exceed a limit; the closure gets the request. All other refusals are
    /// answered as before: by a problem document, or by [`respond_with`](Self::respond_with).
    ///
    /// ```
    /// use actix_web::{HttpRequest, HttpResponse};
    /// use sluicegate_actix::{Ip, Limit, RateLimit};
    /// use sluicegate_actix::adapter::Refusal;
    ///
    /// let limit = RateLimit::new(Limit::per_second(10).by(Ip::peer())).respond_to_too_many(
    ///     |refusal: &Refusal, _: &HttpRequest| {
    ///         let seconds = refusal.retry_after().unwrap_or(1);
    ///         HttpResponse::TooManyRequests().body(format!("try again in {seconds} s\n"))
    ///     },
    /// );
    /// # let _ = limit;
    /// ```
    pub fn respond_to_too_many(
        self,
        respond: impl Fn(&Refusal, &HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        let respond = self.limited.respond.clone().too_many(respond);
        Self { limited: Limited { respond, ..self.limited }, ..self }
    }

    /// How often something other than passing at once happened, in all workers together.
    pub fn counts(&self) -> Counts {
        self.limited.enforcer.observer.counters.read()
    }

    /// How many requests wait for their turn, in all workers together.
    pub fn waiting(&self) -> usize {
        self.limited.enforcer.gate.waiting()
    }

    /// Changes any setting of how requests are admitted.
    pub fn with(mut self, change: impl FnOnce(&mut Enforcer<S>)) -> Self {
        change(&mut self.limited.enforcer);
        self
    }
}

impl<I, R, S, B> Transform<I, ServiceRequest> for RateLimit<R, S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    R: for<'a> Rule<RequestView<'a>> + Clone,
    S: Store + Clone + 'static,
{
    type Response = ServiceResponse<EitherBody<Body<B>>>;
    type Error = Error;
    type Transform = RateLimitService<I, R, S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: I) -> Self::Future {
        ready(Ok(RateLimitService::new(service, self.rule.clone(), self.limited.clone())))
    }
}

impl<R: fmt::Debug, S: fmt::Debug> fmt::Debug for RateLimit<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("rule", &self.rule)
            .field("store", &self.limited.enforcer.store)
            .field("gate", &self.limited.enforcer.gate)
            .finish_non_exhaustive()
    }
}
