//! What gRPC tools may ask about the services: their methods and messages, for `grpcurl` and the like.

mod files;
mod make;

use tonic::service::RoutesBuilder;
use tonic_reflection::server::{Builder, Error};

/// Adds reflection, in its present version and in the one that older tools ask for.
///
/// # Errors
///
/// If the descriptions do not fit together.
pub(crate) fn add(routes: &mut RoutesBuilder) -> Result<(), Error> {
    let builder = || {
        Builder::configure()
            .register_file_descriptor_set(make::set(&files::FILES))
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}

#[cfg(test)]
mod tests;
