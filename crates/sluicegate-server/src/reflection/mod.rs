//! What gRPC tools may ask about the services: their methods and messages, for `grpcurl` and the like.

mod auth_files;
mod files;
mod make;
mod quota_files;

use prost_types::FileDescriptorSet;
use sluicegate_lease::CAPACITY_DESCRIPTORS;
use tonic::service::RoutesBuilder;
use tonic_reflection::server::{Builder, Error};

use crate::service::Service;

/// Adds reflection, in its present version and in the one that older tools ask for.
///
/// # Errors
///
/// If the descriptions do not fit together.
pub(crate) fn add(service: &Service, routes: &mut RoutesBuilder) -> Result<(), Error> {
    let builder = || {
        let builder = Builder::configure()
            .register_file_descriptor_set(described(
                service.authorizer().is_some(),
                service.capacity().is_some(),
            ))
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        match service.capacity() {
            Some(_) => builder.register_encoded_file_descriptor_set(CAPACITY_DESCRIPTORS),
            None => builder,
        }
    };
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}

/// The descriptions of the services: with `ext_authz` if the server authorizes, and with quotas if it shares capacity.
fn described(authorizes: bool, shares: bool) -> FileDescriptorSet {
    let mut set = make::set(&files::FILES);
    if authorizes {
        set.file.extend(make::set(&auth_files::FILES).file);
    }
    if shares {
        let mut files = make::set(&quota_files::FILES).file;
        let services = files.iter_mut().flat_map(|file| &mut file.service);
        for method in services.flat_map(|service| &mut service.method) {
            method.client_streaming = Some(true);
            method.server_streaming = Some(true);
        }
        set.file.extend(files);
    }
    set
}

#[cfg(test)]
mod tests;
