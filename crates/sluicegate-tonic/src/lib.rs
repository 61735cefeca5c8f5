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
//! # Keys and conditions
//!
//! All keys of [`sluicegate`] work; a header is metadata. [`key`] has some more:
//!
//! | key | value |
//! | --- | --- |
//! | [`Metadata("x-tenant")`](key::Metadata) | one value of the metadata; `-bin` metadata is decoded |
//! | [`GrpcMethod`](key::GrpcMethod) | `/helloworld.Greeter/SayHello` |
//! | [`GrpcService`](key::GrpcService) | `helloworld.Greeter` |
#![cfg_attr(
    feature = "tls",
    doc = "| [`PeerCertificate`](key::PeerCertificate) | the client's certificate |"
)]
//!
//! A rule can be for some methods only. This one exempts health checks and reflection, and limits one service by its
//! callers' addresses and tenants:
//!
//! ```
//! use sluicegate_tonic::condition::Not;
//! use sluicegate_tonic::key::{GrpcMethod, GrpcService, Metadata};
//! use sluicegate_tonic::{Ip, Limit, RateLimitLayer};
//!
//! let tools = GrpcService.is_any(GrpcService::HEALTH_AND_REFLECTION);
//! let each = Limit::per_second(50).by(Ip::peer()).when(Not(tools));
//! let search = GrpcMethod.matches("/shop.Catalogue/*");
//! let tenants = Limit::per_minute(600).by(Metadata("x-tenant")).when(search);
//! let layer = RateLimitLayer::new((each, tenants));
//! # let _ = layer;
//! ```
//!
//! # gRPC and HTTP on one port
//!
//! In an axum application that also serves gRPC, use one layer of `sluicegate-axum` around the whole router, and let
//! [`Grpc`] answer: `RateLimitLayer::new(rule).respond(Grpc::new())`. Each caller is answered in its own protocol, and the
//! calls of a client count together with its other requests. `cargo run --example one_port` shows it.
//!
//! Clients of gRPC-Web are answered in their own content type, with the status in the header. The layer of tonic-web may be
//! around this one, or inside. Browsers see the status of another origin only if CORS exposes it: name `grpc-status`,
//! `grpc-message`, `grpc-status-details-bin` and `grpc-retry-pushback-ms` in `Access-Control-Expose-Headers`.
//!
//! Without tonic's server (`default-features = false`), the layer is one of tower for any service, such as tonic's
//! `Routes`. The [`Ip`] key then reads a [`Peer`](adapter::Peer) that you leave in the extensions of the request.
//!
//! # Statuses
//!
//! | the request | status | details |
//! | --- | --- | --- |
//! | exceeds a limit | `RESOURCE_EXHAUSTED` | `RetryInfo`; `QuotaFailure` with one violation for each limit that refuses |
//! | costs more than a limit ever admits | `RESOURCE_EXHAUSTED` | `QuotaFailure`; no `RetryInfo` |
//! | lacks a part of its key | `INVALID_ARGUMENT` | |
//! | comes to a server that is not set up | `INTERNAL` | |
//! | comes when the store has failed, and the layer fails closed | `UNAVAILABLE` | `RetryInfo` |
//! | is shed by `sluicegate-throttle` | `UNAVAILABLE` | |
//!
//! Where waiting helps, `grpc-retry-pushback-ms` has the time in milliseconds, as in `RetryInfo`. gRPC clients with a retry
//! policy wait for that long, if the policy names the status. Where it does not help, the field is `-1`, and they do not
//! retry. `Retry-After` has whole seconds. The details of the largest refusal fit into 8 KiB.
//!
//! gRPC has no redirects: a request that would be redirected gets `RESOURCE_EXHAUSTED`.
//!
//! # Streams
//!
//! A streaming call is charged once, when it begins. It holds its place of a [`Limit::concurrent`] until its last message
//! has been sent, or until its client has left. Single messages are not held back; [`CountMessages`] settles the call by
//! their number when it has ended.
//!
//! # Features
//!
//! - `transport` (on by default): the [`Ip`] key reads the peer that tonic's server provides.
//! - `tls`: the same for connections over TLS, and the client's certificate as a key.
//!
//! This crate re-exports `sluicegate`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod framework;
pub mod key;
pub mod messages;
mod respond;
mod status;

#[doc(inline)]
pub use sluicegate::{
    Claim, Cost, Decision, Fields, First, Global, Header, Ip, Limit, Limiter, ManualClock, Memory,
    Rejection, Route, Tiers, adapter, clock, condition, cost, limit, observe, response, rule,
    store, when,
};

pub use self::framework::{RateLimitLayer, Tonic};
pub use self::messages::CountMessages;
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
