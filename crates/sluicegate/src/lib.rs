//! Rate limiting for tower services.
//!
//! [`RateLimitLayer`] limits how fast clients may use a service. A [`Rule`](rule::Rule) says which [`Limit`]s a
//! request is charged to, and by which key. A [`Store`](store::Store) decides. A [`Rejection`] says what happens to
//! requests that exceed a limit. [`Limiter`] does the same for code without HTTP.
//!
//! The [`guide`] leads from the first limit to production.
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
//! # How long a request holds its place
//!
//! A request holds its place of [`Limit::concurrent`], and counts as [`InFlight`](condition::InFlight), until the
//! body of the response has ended, failed, or been dropped because the client has gone. If the response upgrades
//! the connection (a WebSocket), the request holds its place until the upgraded connection is dropped. With
//! [`hold_until`](service::RateLimitLayerFor::hold_until), it holds its place only until the head of the response is
//! there. A [`RunningCost`](cost::RunningCost) charges a streamed response what it used.
//!
//! The body of the response is therefore a [`Body`](response::Body) around the body of the inner service.
//!
//! # Clients that leave
//!
//! The future of a request is dropped when its client leaves. A request that was being served then keeps its
//! charge. A request that was waiting, for its turn or for the answer of a store, gives its charge back. With layers
//! on top of one another the outer layers give back too, also through other services between them, except:
//!
//! - The request runs in a task of its own (`tokio::spawn`): the end of the task does not reach the outer layer.
//! - A layer between them tries a request again that was served before: it counts as not served.
//!
//! # Features
//!
//! - `upgrades` (on by default): an upgraded connection of hyper, axum or tonic keeps the place of its request. If
//!   it holds one, `hyper::upgrade::Upgraded::downcast` no longer finds the type of the server.
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the `metrics` facade.
//!   `sluicegate-core` lists them, and `examples/policies/metrics.rs` shows them to Prometheus and Grafana.
//! - `file`: keeps the counts of `Memory` in a file, so that they survive a restart.
//! - `hours`, `cpu`: conditions on the hour in a time zone, and on the processor time that is left.
//! - `geoip`: keys and conditions by country and region, from a GeoIP database.
//!
//! This crate re-exports `sluicegate-core`. A service depends on this crate alone, or on `sluicegate-axum` or
//! `sluicegate-actix`.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adapter;
mod body;
mod boxed;
pub mod guide;
mod headers;
mod http_limit;
mod in_flight;
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

pub use self::limiter::Limiter;
pub use self::rate_limit::layer::RateLimitLayer;
