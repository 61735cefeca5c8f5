//! Rate limiting for axum.
//!
//! [`RateLimitLayer`] is a tower layer that knows where axum keeps the address of the peer (`ConnectInfo`) and the
//! pattern of the route (`MatchedPath`). Put it on a whole router with
//! [`Router::layer`](axum::Router::layer), on the routes so far with
//! [`Router::route_layer`](axum::Router::route_layer), or on one route with
//! [`MethodRouter::layer`](axum::routing::MethodRouter::layer), each with its own limits.
//!
//! ```no_run
//! use std::net::SocketAddr;
//! use axum::{Router, routing::get};
//! use sluicegate_axum::{Ip, Limit, RateLimitLayer};
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let app: Router = Router::new()
//!         .route("/", get(|| async { "hello" }))
//!         .layer(RateLimitLayer::new(Limit::per_minute(100).burst(20).by(Ip::peer())));
//!
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//!     axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
//! }
//! ```
//!
//! Without `into_make_service_with_connect_info`, axum does not know the address of the peer. A rule by [`Ip`] then
//! answers `500 Internal Server Error` and logs the line to add. It never lets all clients share one budget.
//!
//! The [guide](sluicegate::guide) leads from the first limit to production.
//!
//! # Nested routers
//!
//! A router that is nested in another one sees a path without the prefix. Keys and conditions see the whole path,
//! as the client wrote it, wherever the layer is: in a router nested at `/api`, write
//! `Path.matches("/api/login")`. [`Route`] is the whole pattern too. A layer around a `nest_service` runs before
//! the service has matched a route. There, the key [`Route`] is missing, and `Route.is("/api/login")` compares the
//! pattern with the path.
//!
//! # Features
//!
//! - `tokio` (on by default): the [`Ip`] key reads the peer that axum's server provides.
//! - `matched-path` (on by default): the [`Route`] key reads the pattern that axum matched.
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the `metrics` facade.
//!   `sluicegate-core` lists them, and `examples/policies/metrics.rs` shows them to Prometheus and Grafana.
//! - `hours`, `cpu`: conditions on the hour in a time zone, and on the processor time that is left.
//!
//! This crate re-exports `sluicegate`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod extract;
mod framework;
mod layer;

#[doc(inline)]
pub use sluicegate::{
    Claim, Cost, Decision, Fields, First, Global, Header, Ip, Limit, Limiter, ManualClock, Memory,
    Rejection, Route, Tiers, clock, condition, cost, key, limit, observe, response, rule, store,
    when,
};

pub use self::extract::{CurrentDecision, NotLimited};
pub use self::layer::RateLimitLayer;

/// The API for adapters to frameworks, and for stores.
pub mod adapter {
    #[doc(inline)]
    pub use sluicegate::adapter::*;

    pub use crate::framework::{Axum, key_of};
}

/// Services and futures that the layers make.
pub mod service {
    #[doc(inline)]
    pub use sluicegate::service::*;

    use crate::Memory;
    use crate::adapter::Axum;
    use crate::response::Problem;

    /// A tower layer that counts requests in flight, as [`sluicegate::service::InFlightLayer`] does.
    pub type InFlightLayer = sluicegate::service::InFlightLayerFor<Axum>;

    /// A [`RateLimitLayer`](crate::RateLimitLayer) whose type does not depend on its rule, store and responder.
    ///
    /// Such a layer can be stored in a struct, returned from a function and chosen at run time.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use sluicegate_axum::service::BoxRateLimitLayer;
    /// use sluicegate_axum::{Global, Ip, Limit, RateLimitLayer};
    ///
    /// fn layer(by_client: bool) -> BoxRateLimitLayer {
    ///     let limit = Limit::per_minute(100);
    ///     match by_client {
    ///         true => RateLimitLayer::new(limit.by(Ip::peer())).boxed(),
    ///         false => RateLimitLayer::new(limit.by(Global)).boxed(),
    ///     }
    /// }
    ///
    /// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(layer(true));
    /// # let _ = app;
    /// ```
    pub type BoxRateLimitLayer<B = axum::body::Body, ResBody = axum::body::Body> =
        crate::RateLimitLayer<BoxRule<B>, crate::store::BoxStore, BoxRespond<B, ResBody>>;

    /// A rule of any type, for requests to axum.
    pub type BoxRule<B = axum::body::Body> = sluicegate::service::BoxRule<B, Axum>;

    /// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
    pub type RateLimit<I, R, S = Memory, P = Problem> =
        sluicegate::service::RateLimitFor<I, R, S, Axum, P>;
}
