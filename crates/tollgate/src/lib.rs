//! Rate limiting for tower services.
//!
//! [`RateLimitLayer`] limits how fast clients may use a service: a [`Rule`] says which [`Limit`]s a
//! request owes to and on whose key, a [`Store`] decides, and a [`Rejection`] says what happens to
//! what exceeds them. [`Limiter`] is the same for code without HTTP.
//!
//! ```
//! use tollgate::{Header, Limit, RateLimitLayer};
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
//! # Features
//!
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the facade of that name;
//!   `tollgate-core` lists them, and `examples/policies/metrics.rs` shows them to Prometheus and Grafana.
//!
//! Everything of `tollgate-core` is re-exported here: a service depends on this crate alone, or on
//! `tollgate-axum` or `tollgate-actix`.

mod future;
mod headers;
mod in_flight;
mod layer;
mod limiter;
mod reply;
mod respond;
mod service;
mod sleep;
mod view;

#[doc(inline)]
pub use tollgate_core::*;

pub use self::future::ResponseFuture;
pub use self::in_flight::{InFlightFuture, InFlightLayer, InFlightService};
pub use self::layer::{RateLimitLayer, RateLimitLayerFor};
pub use self::limiter::{Acquire, AcquireError, Limiter, Take};
pub use self::respond::{Bare, Problem, Respond, RespondFn};
pub use self::service::{RateLimit, RateLimitFor};
pub use self::view::{Framework, HttpView, MatchedRoute, Peer, Plain};
