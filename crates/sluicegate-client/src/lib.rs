//! The consumer's side of rate limits: layers for programs that call an API of somebody else.
//!
//! They wrap any [tower](https://docs.rs/tower) service for `http::Request`, such as a client of hyper-util or a channel
//! of tonic; `reqwest::Client`; and, as middleware, the client of the crate `reqwest-middleware`. [`outgoing`] says what
//! they see of a request. [`Outgoing`] is all layers in the right order.
//!
//! ```
//! use http::{Request, Response};
//! use sluicegate_client::{BoxError, Outgoing};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! // In place of the function: a client of hyper-util, a channel of tonic, or `reqwest::Client`.
//! let mut client = ServiceBuilder::new().layer(Outgoing::new()).service_fn(|_: Request<()>| async {
//!     Ok::<_, BoxError>(Response::new("hello"))
//! });
//! let request = Request::get("https://api.example/").body(())?;
//! assert_eq!(client.ready().await?.call(request).await?.body(), &"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `grpc`: reads `RetryInfo` in the details of a status of gRPC.
//! - `reqwest`: layers around `reqwest::Client`.
//! - `reqwest-middleware`: the layers as middleware of the crate of that name.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adaptive_throttle;
mod call;
mod error;
pub mod fleet;
mod layered;
pub mod obey;
pub mod outgoing;
pub mod pace;
pub mod propagate;
pub mod replay;
pub mod retry;
pub mod smooth;
mod stack;
mod table;
mod waiting;

pub use self::adaptive_throttle::AdaptiveThrottleLayer;
pub use self::error::{BoxError, Refused};
pub use self::layered::Layered;
pub use self::obey::ObeyLayer;
pub use self::pace::PaceLayer;
pub use self::propagate::PropagateLayer;
pub use self::replay::ReplayLayer;
pub use self::retry::RetryLayer;
pub use self::smooth::SmoothLayer;
pub use self::stack::{Once, Outgoing};
pub use sluicegate::adapter::ConfigError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
