//! Envoy's rate limit service, version 3.
//!
//! [`add`] adds the gRPC service to a server of tonic.

mod answer;
mod counters;
mod grpc;
mod message;
#[cfg(test)]
mod model_tests;
mod rules;
mod statistics;
#[cfg(test)]
mod tests;
mod wire;

use tonic::service::RoutesBuilder;

pub(crate) use self::answer::answer;
pub(crate) use self::counters::{Counters, Failure};
pub(crate) use self::grpc::Rls;
pub(crate) use self::message::{fields_to_add, numbered};
pub(crate) use self::statistics::Statistics;
pub use self::statistics::StatsD;

use crate::grpc::Routed;
use crate::service::Service;

/// The name of the gRPC service.
pub const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";

/// Adds the gRPC service to a server's routes.
///
/// No content of a request makes a call fail, because Envoy lets requests pass whose calls fail. Texts may be any bytes. What
/// the client has to change is over its limit: a request that lacks the header of a key, a path or a query that is too long,
/// and a message of more than 1 MiB.
pub fn add(service: &Service, routes: &mut RoutesBuilder) {
    routes.add_service(Routed(Rls::new(service)));
}
