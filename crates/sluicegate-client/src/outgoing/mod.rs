//! What the layers see of the requests that leave, and of the responses.
//!
//! [`OutgoingRequest`] and [`OutgoingResponse`] are implemented for the types of the crate `http` and, with the feature
//! `reqwest`, for those of reqwest. Keys and rules of sluicegate are written against [`OutgoingView`].
//!
//! ```
//! use http::Request;
//! use sluicegate::key::{Host, KeyBuf};
//! use sluicegate_client::outgoing::{Origin, OutgoingView};
//!
//! let request = |uri: &str| Request::get(uri).body(()).unwrap();
//! let (one, other) = (request("https://api.example/a"), request("https://api.example/b"));
//! let key = |request| KeyBuf::from_view(&(Origin, Host), &OutgoingView::new(request));
//! assert_eq!(key(&one), key(&other));
//! ```

mod context;
pub(crate) mod grpc;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod request;
#[cfg(feature = "reqwest")]
mod reqwest;
mod view;

pub use self::context::Context;
#[cfg(feature = "reqwest-middleware")]
pub use self::middleware::{AsMiddleware, MiddlewareLayer, MiddlewareRequest, NextService};
pub use self::request::{OutgoingRequest, OutgoingResponse, ReplayRequest, Target};
pub(crate) use self::view::AnyKey;
pub use self::view::{Origin, OutgoingView};
