//! Envoy's rate limit service, version 3.
//!
//! [`answer`] decides about a request without the messages of the protocol. [`add`] adds the gRPC service to a server
//! of tonic.

mod answer;
mod counters;
mod failure;
mod fields;
mod grpc;
mod message;
mod metadata;
mod rules;
mod timeout;
mod unary;
mod wire;

use tonic::service::RoutesBuilder;

pub use self::answer::answer;
pub(crate) use self::counters::Counters;
pub use self::failure::Failure;
pub(crate) use self::unary::{Reply, Unary};

use crate::service::Service;

/// The name of the gRPC service.
pub const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";

/// Adds the gRPC service to a server's routes. Messages of more than 64 KiB are refused.
pub fn add(service: &Service, routes: &mut RoutesBuilder) {
    routes.add_service(grpc::server(service));
}
