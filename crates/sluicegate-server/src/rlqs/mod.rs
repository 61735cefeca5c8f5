//! Envoy's rate limit quota service, version 3: a capacity that several Envoys share.
//!
//! Each Envoy decides by itself, by a token bucket that the server assigns, and reports every 5 seconds how much its
//! buckets were used. A bucket of a stream is a client of the [pool](crate::capacity): what it reports is what it wants.
//! The sum of all that Envoys may be spending is never more than the capacity, plus the burst.
//!
//! # Why it is never more
//!
//! - Envoy acknowledges nothing. After a part was made smaller, the larger one counts until a report comes more than a
//!   second after that, or until its time to live has passed.
//! - The burst is divided like the capacity: a token bucket has the same part of it. Only a part of less than one token is
//!   rounded up to one.
//! - Assignments end 2 seconds earlier at the Envoy than here. The time to live of a lost stream's parts passes before
//!   others get them, and an assignment after its end, which begins with all tokens, waits for that too.
//! - A server that has just started learns what Envoys have from what they report, for the length of a lease. New ones get
//!   nothing meanwhile.
//! - Where one of several servers is the master, an assignment leaves only after the store has the bucket in its list of
//!   who may hold a part, and while the server is still the master. Streams end with the mastership.
//! - An assignment lasts from its arrival on, so one that has not left half a second after its decision never does. All
//!   streams end if the process stood still for a second.
//!
//! Two things are assumed: an assignment is on its way for less than a second, and Envoys are configured to deny what has no
//! assignment.
//!
//! [`Quotas`] decides all of that without a clock and a network.

mod assignment;
mod grpc;
mod message;
mod outstanding;
mod quotas;
mod streams;
mod unit;
mod wire;

use tonic::service::RoutesBuilder;

pub use self::assignment::Assignment;
pub use self::quotas::{
    BUCKETS_AT_ONCE, MAX_BUCKETS, MAX_STREAMS, Order, Quotas, ReportError, StreamId,
};
pub use self::unit::BucketUsage;

use crate::capacity::Shared;
use crate::service::Service;

/// The name of the gRPC service.
pub const NAME: &str = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService";

/// Adds the gRPC service to a server's routes. A message of more than 16 MiB ends its stream.
///
/// An Envoy that sends the metadata `x-sluicegate-client` with a name of its own gets its parts back when it has lost its
/// stream. Without a name, its parts stay held until their time to live has passed.
///
/// # Panics
///
/// If it is called outside of a Tokio runtime.
pub fn add(service: &Service, shared: &Shared, routes: &mut RoutesBuilder) {
    routes.add_service(shared.passing(grpc::server(service, shared), true));
}

#[cfg(test)]
mod tests;
