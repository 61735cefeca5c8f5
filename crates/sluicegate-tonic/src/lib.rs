//! Rate limiting for [tonic](https://docs.rs/tonic).
//!
//! A gRPC client does not understand `429 Too Many Requests`: it reports `UNAVAILABLE`, which says that the
//! server is broken and invites a retry at once. [`Grpc`] answers gRPC requests with a gRPC status instead:
//! `RESOURCE_EXHAUSTED`, with the time to wait as `google.rpc.RetryInfo`. Other requests on the same port are
//! answered as before.
//!
//! ```no_run
//! use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
//! use tonic::transport::Server;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), tonic::transport::Error> {
//!     let (_, health) = tonic_health::server::health_reporter();
//!     Server::builder()
//!         .layer(RateLimitLayer::new(Limit::per_second(50).burst(10).by(Ip::peer())))
//!         .add_service(health)
//!         .serve(([127, 0, 0, 1], 50051).into())
//!         .await
//! }
//! ```
//!
//! In an axum application that serves gRPC and plain HTTP on one port, use the layer of `sluicegate-axum` and give it
//! the same responder: `RateLimitLayer::new(rule).respond(Grpc::new())`.
//!
//! A method of a service is a path, such as `/helloworld.Greeter/SayHello`. Use [`Path`](key::Path) to limit
//! each method by itself.
//!
//! # Statuses
//!
//! | the request | status | details |
//! | --- | --- | --- |
//! | exceeds a limit | `RESOURCE_EXHAUSTED` | `RetryInfo`; `QuotaFailure` names the limits |
//! | costs more than a limit ever admits | `RESOURCE_EXHAUSTED` | no `RetryInfo`, since a retry cannot succeed; `QuotaFailure` |
//! | lacks a part of its key | `INVALID_ARGUMENT` | |
//! | comes to a server that is not set up | `INTERNAL` | |
//! | comes when the store has failed, and the layer fails closed | `UNAVAILABLE` | `RetryInfo` |
//!
//! gRPC has no redirects: a request that would be redirected gets `RESOURCE_EXHAUSTED`.
//!
//! # Features
//!
//! - `transport` (on by default): the [`Ip`] key reads the peer that tonic's server provides.
//! - `tls`: the same for connections over TLS.
//!
//! This crate re-exports `sluicegate`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod framework;
mod layer;
mod respond;
mod status;

#[doc(inline)]
pub use sluicegate::{
    Claim, Cost, Decision, Fields, First, Global, Header, Ip, Limit, Limiter, ManualClock, Memory,
    Rejection, Route, Tiers, adapter, clock, condition, cost, key, limit, observe, response, rule,
    store, when,
};

pub use self::framework::Tonic;
pub use self::layer::RateLimitLayer;
pub use self::respond::Grpc;

/// Services and futures that the layers make.
pub mod service {
    #[doc(inline)]
    pub use sluicegate::service::*;

    use crate::store::BoxStore;
    use crate::{Grpc, Memory, Tonic};

    /// A [`RateLimitLayer`](crate::RateLimitLayer) whose type does not depend on its rule, store and responder.
    pub type BoxRateLimitLayer<B, ResBody> =
        crate::RateLimitLayer<BoxRule<B>, BoxStore, BoxRespond<B, ResBody>>;

    /// A rule of any type, for requests to tonic.
    pub type BoxRule<B> = sluicegate::service::BoxRule<B, Tonic>;

    /// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
    pub type RateLimit<I, R, S = Memory, P = Grpc> = RateLimitFor<I, R, S, Tonic, P>;
}
