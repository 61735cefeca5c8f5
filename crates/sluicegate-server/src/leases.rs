//! Leases of capacity over gRPC, for programs that limit themselves.
//!
//! A client, such as the `LeaseClient` of `sluicegate-lease`, asks for a part of a capacity of the [file](crate::capacity),
//! says how much it wants, and keeps to what it is granted until the lease ends. It needs no answer for a single request.
//! Envoys draw on the same pool, so all together never get more than the capacity.
//!
//! The server believes each client its name, so open the port to programs that you trust, by mutual TLS for example.
//! [Clients](crate::capacity::Capacities::read) of the file say which names may draw on a capacity, and with what weight. Names that
//! begin with `envoy/` are refused, because they are those of Envoys.

use sluicegate_lease::CapacityService;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;

use crate::capacity::Shared;

/// The name of the gRPC service, which is that of Doorman.
pub const NAME: &str = <CapacityService as NamedService>::NAME;

/// Adds the service to a server's routes. Messages of more than 512 KiB are refused.
///
/// # Panics
///
/// If it is called outside of a Tokio runtime.
pub fn add(shared: &Shared, routes: &mut RoutesBuilder) {
    routes.add_service(shared.passing(shared.leases().clone(), false));
}
