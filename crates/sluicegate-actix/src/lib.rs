//! Rate limiting for actix-web.
//!
//! [`RateLimit`] is a middleware for a whole [`App`](actix_web::App), a scope or a resource. A [`Rule`](rule::Rule)
//! says which [`Limit`]s a request is charged to, and by which key. A [`Store`](store::Store) decides. A [`Rejection`]
//! says what happens to requests that exceed a limit.
//!
//! ```no_run
//! use actix_web::{App, HttpServer, web};
//! use sluicegate_actix::{Ip, Limit, RateLimit};
//!
//! #[actix_web::main]
//! async fn main() -> std::io::Result<()> {
//!     HttpServer::new(|| {
//!         App::new()
//!             .wrap(RateLimit::new(Limit::per_minute(100).burst(20).by(Ip::peer())))
//!             .route("/", web::get().to(async || "hello"))
//!     })
//!     .bind(("127.0.0.1", 3000))?
//!     .run()
//!     .await
//! }
//! ```
//!
//! All workers of the server share one count, although each worker runs the closure: see [`RateLimit`].
//!
//! The [guide](https://docs.rs/sluicegate/latest/sluicegate/guide/) leads from the first limit to production.
//!
//! # What rules see
//!
//! Closures in rules ([`from_fn`](key::from_fn), [`choose`](rule::choose), [`cost_fn`](cost::cost_fn), `when`) are shown the
//! [`HttpRequest`](actix_web::HttpRequest). [`Ip`] reads the address of the connection
//! ([`peer_addr`](actix_web::HttpRequest::peer_addr)), never actix-web's `realip_remote_addr`, which
//! believes what clients write; name your proxies with [`Ip::behind`]. [`Route`] is the pattern that
//! matches the path, also where the limit is wrapped around the whole app; see
//! [below](#limits-by-the-route). [`Extension`](key::Extension) reads the
//! request's extensions, then the data of the connection (`HttpServer::on_connect`); for app data use
//! `from_fn(|request: &HttpRequest| request.app_data::<T>()…)`.
//!
//! # Limits by the route
//!
//! A limit around a resource knows the route exactly. A limit around an app or a scope decides before
//! actix-web has routed the request, and actix-web shows its patterns, but not the guards of its resources.
//! So there:
//!
//! - `Route.is("/users/{id}")` holds for each request that the resource with this pattern may answer: in
//!   every spelling (`/%75sers/7`), with slashes that [`NormalizePath`] would merge, and also where
//!   another resource with a guard comes first, as for `/users/me`. `Not(Route.is(..))` holds for each
//!   request that another resource may answer.
//! - The key [`Route`] is the first pattern that matches the path. With guards it can be another one than
//!   the pattern that answers, but never one that the client made up. Where several guarded resources
//!   match one path and each has to have a budget of its own, put the limit around the resources.
//!
//! Middleware that rewrites the path, other than [`NormalizePath`], has to run outside of the limit: in
//! actix-web that is the middleware that is wrapped later.
//!
//! [`NormalizePath`]: actix_web::middleware::NormalizePath
//!
//! # How long a request holds its place
//!
//! A request holds its place of [`Limit::concurrent`], and counts as [`InFlight`](condition::InFlight) in an
//! [`InFlightMiddleware`](service::InFlightMiddleware), until the body of the response has ended, failed, or been
//! dropped because the client has gone. An upgraded connection (a WebSocket) is the body of its response. With
//! [`hold_until`](RateLimit::hold_until), the request holds its place only until the head of the response is there.
//! A [`RunningCost`](cost::RunningCost) charges a streamed response what it used.
//!
//! # Clients that leave
//!
//! A request whose future is dropped keeps its charge if a handler was running. If it was waiting, for its turn or
//! for the answer of a store, it gives its charge back, also in middleware further out.
//!
//! In HTTP/1, actix-web does not drop the future of a client that has closed its side of the connection
//! properly (with FIN, as closing a socket does), because such a client may still read the response. A middleware
//! does not learn of it either. So the request keeps its place in the queue, and its handler runs. From actix-web
//! 4.12 on, the server can be told to drop such requests, as hyper always does:
//!
//! ```no_run
//! # use actix_web::{App, HttpServer};
//! let server = HttpServer::new(App::new).h1_allow_half_closed(false);
//! # let _ = server;
//! ```
//!
//! Then a client that closes its side leaves the queue at once, and its handler does not run.
//!
//! # Features
//!
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the `metrics` facade.
//!   `sluicegate-core` lists them, and `examples/policies/metrics.rs` shows them to Prometheus and Grafana.
//! - `hours`, `cpu`: conditions on the hour in a time zone, and on the processor time that is left.
//!
//! This crate re-exports `sluicegate-core`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod boxed;
mod extract;
mod headers;
mod in_flight;
mod limited;
mod pattern;
mod rate_limit;
mod reply;
mod respond;
mod routed;
mod shared;
mod sleep;
mod view;

#[doc(inline)]
pub use sluicegate_core::{
    Claim, Cost, Decision, Fields, First, Global, Header, Ip, Limit, ManualClock, Memory,
    Rejection, Route, Tiers, clock, condition, cost, key, limit, observe, rule, store, when,
};

pub use self::extract::{CurrentDecision, NotLimited};
pub use self::rate_limit::middleware::RateLimit;

/// The API for adapters to frameworks, and for stores.
pub mod adapter {
    #[doc(inline)]
    pub use sluicegate_core::adapter::*;

    pub use crate::view::{RequestView, key_of};
}

/// Responses: what is sent instead of, or around, the response of the service.
pub mod response {
    #[doc(inline)]
    pub use sluicegate_core::response::*;

    pub use crate::body::Body;
}

/// Services and futures that the middleware makes.
pub mod service {
    pub use crate::boxed::BoxRule;
    pub use crate::in_flight::{InFlightFuture, InFlightMiddleware, InFlightService};
    pub use crate::rate_limit::future::ResponseFuture;
    pub use crate::rate_limit::service::RateLimitService;

    /// A [`RateLimit`](crate::RateLimit) whose type does not depend on its rule and store.
    ///
    /// Such a middleware can be stored in a struct, returned from a function and chosen at run time.
    /// [`RateLimit::boxed`](crate::RateLimit::boxed) makes one.
    ///
    /// ```
    /// use actix_web::App;
    /// use sluicegate_actix::service::BoxRateLimit;
    /// use sluicegate_actix::{Global, Ip, Limit, RateLimit};
    ///
    /// struct Limits {
    ///     api: BoxRateLimit,
    /// }
    ///
    /// fn limits(by_client: bool) -> Limits {
    ///     let limit = Limit::per_minute(100);
    ///     let api = match by_client {
    ///         true => RateLimit::new(limit.by(Ip::peer())).boxed(),
    ///         false => RateLimit::new(limit.by(Global)).boxed(),
    ///     };
    ///     Limits { api }
    /// }
    ///
    /// let app = App::new().wrap(limits(true).api);
    /// # let _ = app;
    /// ```
    pub type BoxRateLimit = crate::RateLimit<BoxRule, crate::store::BoxStore>;
}
