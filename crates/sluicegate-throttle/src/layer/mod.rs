//! The layer for services: of tower, axum (feature `axum`) and actix-web (feature `actix`).
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use http::{Request, Response};
//! use sluicegate::Header;
//! use sluicegate::key::Path;
//! use sluicegate_throttle::layer::class_when;
//! use sluicegate_throttle::{Class, Throttle};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
//! let layer = throttle
//!     .layer()
//!     .criticality(class_when(Path.matches("/checkout"), Class::CRITICAL_PLUS))
//!     .fair_by(Header("x-customer"))
//!     .deadline(Duration::from_secs(1))
//!     .exempt(Path.matches("/health"));
//!
//! let mut service = ServiceBuilder::new().layer(layer).service_fn(|_: Request<String>| async {
//!     Ok::<_, Infallible>(Response::new(String::from("hello")))
//! });
//! let response = service.ready().await?.call(Request::new(String::new())).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(throttle.snapshot().counts.started, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # axum
//!
//! The same layer, with the feature `axum`: keys and conditions then find the route (`MatchedPath`), the peer
//! (`ConnectInfo`), and the whole path in nested routers.
//!
//! ```
//! use std::time::Duration;
//! use axum::{Router, routing::get};
//! use sluicegate_throttle::Throttle;
//!
//! let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(throttle.layer());
//! # let _ = app;
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```
//!
//! # tonic
//!
//! The same layer, for `tonic::transport::Server::builder().layer(..)`. With the feature `tonic`, keys, conditions and
//! [`ClassHeader`] find the peer. tonic knows no routes, so predict the cost by the gRPC method.
//!
//! ```
//! # #[cfg(feature = "tonic")] {
//! use std::time::Duration;
//! use sluicegate_throttle::Throttle;
//! use sluicegate_throttle::layer::{DeadlineHeader, Guard};
//! use sluicegate_tonic::key::GrpcMethod;
//! use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
//!
//! let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
//! let layer = throttle.layer().predict_by(GrpcMethod).deadline(DeadlineHeader::grpc());
//! let guard = Guard::new(RateLimitLayer::new(Limit::per_second(50).by(Ip::peer())), layer);
//! # let _ = guard;
//! # }
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```
//!
//! # actix-web
//!
//! The same layer again, with the feature `actix`. Make the throttle outside of the closure that makes the app: each worker
//! calls that closure, and a throttle that it makes would be one for each worker.
//!
//! ```no_run
//! # #[cfg(feature = "actix")] {
//! use std::time::Duration;
//! use actix_web::{App, HttpServer, web};
//! use sluicegate_throttle::Throttle;
//!
//! let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
//! let layer = throttle.layer();
//! let server = HttpServer::new(move || {
//!     App::new().wrap(layer.clone()).route("/", web::get().to(async || "hello"))
//! });
//! # let _ = server;
//! # }
//! # Ok::<(), sluicegate_throttle::ConfigError>(())
//! ```
//!
//! By default, actix-web does not drop the request of a client that has closed its side of the connection, so such a request
//! stays in the queue. `HttpServer::h1_allow_half_closed(false)` changes that.
//!
//! # Refusals
//!
//! A request that is shed gets `503 Service Unavailable` with `Retry-After` and a problem document;
//! [`respond_with`](ThrottleLayer::respond_with) makes another response, and [`WhenShed`] redirects or degrades. Rate limits
//! further out give their charges back; [`Guard`] puts them there.
//!
//! Calls of gRPC and gRPC-Web are known by their content type. They get the status `UNAVAILABLE`, which says that a call was
//! not started and may be repeated, with the time to wait in `grpc-retry-pushback-ms`. A call that costs more than the queue
//! holds is told not to retry.
//!
//! # Upgrades and streams
//!
//! Upgraded connections, such as WebSockets, count until the head of their response; with [`HoldUntil::Close`] until they
//! have closed. A handler whose response streams for long can put [`HoldUntil::Head`] into the extensions of its
//! response. The request then counts only until the head of its response.
//!
//! ```
//! use axum::Extension;
//! use axum::response::IntoResponse;
//! use sluicegate_throttle::layer::HoldUntil;
//!
//! async fn events() -> impl IntoResponse {
//!     (Extension(HoldUntil::Head), "data: an event stream\n\n")
//! }
//! # let _ = events;
//! ```
//!
//! Do not exempt requests by something that a client writes, such as the field `Upgrade`: any client could then bypass
//! the queue. Exempt routes instead, by [`exempt`](ThrottleLayer::exempt).

#[cfg(feature = "actix")]
mod actix;
mod builder;
mod criticality;
mod dispatch;
mod drainer;
#[cfg(feature = "tower")]
mod future;
mod guard;
mod in_service;
#[cfg(all(test, loom))]
mod loom;
mod nesting;
mod observing;
mod pending_starts;
mod processors;
#[cfg(feature = "metrics")]
mod record;
mod refusal;
mod requests;
#[cfg(feature = "tower")]
mod service;
mod shared;
mod snapshot;
mod throttle;
mod throttle_layer;
mod turn;
mod unit;

/// Locks: those of the standard library, or those of loom, which tries every order in which threads can run.
mod sync {
    #[cfg(all(test, loom))]
    pub(super) use loom::sync::{Mutex, MutexGuard};
    #[cfg(not(all(test, loom)))]
    pub(super) use std::sync::{Mutex, MutexGuard};
}

#[cfg(feature = "actix")]
pub use self::actix::{ActixFuture, ActixService};
pub use self::builder::ThrottleBuilder;
pub use self::criticality::{
    ClassFn, ClassHeader, Criticality, Partition, PartitionBy, Unreadable, When, class_fn,
    class_when, partition_when,
};
#[cfg(feature = "tower")]
pub use self::future::ResponseFuture;
pub use self::guard::Guard;
pub use self::in_service::HoldUntil;
pub use self::refusal::WhenShed;
pub use self::requests::{Deadline, DeadlineHeader, Describe, Description, Nothing, Requests};
#[cfg(feature = "tower")]
pub use self::service::{Servers, ThrottleService};
pub use self::snapshot::{
    ClassSnapshot, FlowSnapshot, KeySnapshot, PartitionSnapshot, Snapshot, UnreadCounts,
};
pub use self::throttle::Throttle;
pub use self::throttle_layer::ThrottleLayer;
pub use self::unit::Reported;
