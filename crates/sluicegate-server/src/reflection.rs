//! What gRPC tools may ask about the services: their methods and messages, for `grpcurl` and the like.

use sluicegate_lease::CAPACITY_DESCRIPTORS;
use tonic::service::RoutesBuilder;
use tonic_reflection::server::{Builder, Error};

use crate::rooms;
use crate::service::Service;

/// Envoy's protocol files, compiled: see `tests/server/descriptors.rs`.
const DESCRIPTORS: &[u8] = include_bytes!("envoy.bin");

/// Services of gRPC itself.
const OWN: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Adds reflection, in its present version and in the one that older tools ask for.
///
/// # Errors
///
/// If the descriptions do not fit together.
pub(crate) fn add(service: &Service, routes: &mut RoutesBuilder) -> Result<(), Error> {
    let builder = || {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(CAPACITY_DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        // Of those that are described, the ones that are served are listed.
        rooms::names(service).into_iter().chain(OWN).fold(builder, Builder::with_service_name)
    };
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}
