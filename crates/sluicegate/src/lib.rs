//! Rate limiting for tower services.
//!
//! [`RateLimitLayer`] limits how fast clients may use a service: a [`Rule`](rule::Rule) says which [`Limit`]s a
//! request is charged to and by which key, a [`Store`](store::Store) decides, and a [`Rejection`] says what happens to
//! what exceeds them. [`Limiter`] is the same for code without HTTP.
//!
//! ```
//! use sluicegate::{Header, Limit, RateLimitLayer};
//! # use http::{Request, Response};
//! # use tower::{Layer, Service, ServiceExt};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), std::convert::Infallible> {
//!
//! let layer = RateLimitLayer::new(Limit::per_minute(1).by(Header("x-api-key")));
//!
//! let mut service = layer.layer(tower::service_fn(|_: Request<String>| async {
//!     Ok::<_, std::convert::Infallible>(Response::new(String::from("hello")))
//! }));
//! let request = || Request::builder().header("x-api-key", "alice").body(String::new()).unwrap();
//!
//! assert_eq!(service.ready().await?.call(request()).await?.status(), 200);
//! let refused = service.ready().await?.call(request()).await?;
//! assert_eq!(refused.status(), 429);
//! assert_eq!(refused.headers()["retry-after"], "60");
//! # Ok(())
//! # }
//! ```
//!
//! The [`guide`] leads from the first limit to production.
//!
//! # What is held, and until when
//!
//! A place of [`Limit::concurrent`] is held, and a request counts as [`InFlight`](condition::InFlight), until the response's
//! body has ended, failed, or been dropped because the client has gone; where the response upgrades the
//! connection (a WebSocket), until the upgraded connection is dropped. With
//! [`hold_until`](service::RateLimitLayerFor::hold_until) it is only until the head of the response is there. A
//! [`RunningCost`](cost::RunningCost) charges a streamed answer what it used.
//!
//! The response's body is therefore a [`Body`](response::Body) around that of the service inside, whatever that is.
//!
//! # Clients that leave
//!
//! A request whose client leaves (its future is dropped) keeps its charge if it was being served, and
//! gives everything back if it was waiting: for its turn, or for a store's answer. With layers on top of
//! one another the outer ones give back too, through whatever is between them, except:
//!
//! - a task of its own (`tokio::spawn`): its end does not reach the outer layer;
//! - an outer layer with [`extensions(false)`](service::RateLimitLayerFor::extensions): the inner one cannot tell
//!   that the request has passed it;
//! - a retry in between, of a request that was served before: it counts as not served.
//!
//! # Features
//!
//! - `upgrades`: an upgraded connection of hyper, axum or tonic keeps what its request holds; on by
//!   default. Where something is held, `hyper::upgrade::Upgraded::downcast` does not find the server's own
//!   type any more.
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the facade of that name;
//!   `sluicegate-core` lists them, and `examples/policies/metrics.rs` shows them to Prometheus and Grafana.
//!
//! Everything of `sluicegate-core` is re-exported here: a service depends on this crate alone, or on
//! `sluicegate-axum` or `sluicegate-actix`.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adapter;
mod body;
mod future;
pub mod guide;
mod headers;
mod held;
mod in_flight;
mod layer;
mod limiter;
mod rate_limit;
mod reply;
mod respond;
pub mod response;
pub mod service;
mod sleep;
#[cfg(feature = "upgrades")]
mod upgrade;
#[cfg(not(feature = "upgrades"))]
#[path = "no_upgrade.rs"]
mod upgrade;
mod view;

#[doc(inline)]
pub use sluicegate_core::{
    Claim, Cost, Decision, Fields, First, Global, Header, Ip, Limit, ManualClock, Memory,
    Rejection, Route, Tiers, clock, condition, cost, key, limit, observe, rule, store, when,
};

pub use self::layer::RateLimitLayer;
pub use self::limiter::Limiter;
