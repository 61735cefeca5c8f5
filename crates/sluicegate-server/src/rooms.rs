//! What is behind each port: one line for each room, so that a new one is one line more.

use axum::Router;
use sluicegate_lease::CAPACITY_DESCRIPTORS;
use tonic::service::RoutesBuilder;
use tonic_reflection::server::{Builder, Error};

use crate::admin::metrics::Metrics;
use crate::service::Service;
use crate::{admin, api, auth, leases, rlqs, rls};

/// The names of the gRPC services, for health.
pub(crate) fn names(service: &Service) -> Vec<&'static str> {
    [rls::NAME]
        .into_iter()
        .chain(service.authorizer().map(|_| auth::NAME))
        .chain(service.capacity().into_iter().flat_map(|_| [rlqs::NAME, leases::NAME]))
        .collect()
}

/// The services on the gRPC port, besides health, which the server adds because it knows when it stops.
pub(crate) fn grpc(service: &Service, routes: &mut RoutesBuilder) {
    rls::add(service, routes);
    if let Some(authorizer) = service.authorizer() {
        auth::add(authorizer, routes);
    }
    if let Some(shared) = service.capacity() {
        rlqs::add(service, shared, routes);
        leases::add(shared, routes);
    }
}

/// What gRPC tools may ask about the services, such as `grpcurl`: their methods and messages, in the present version of
/// reflection and in the one that older tools ask for.
///
/// # Errors
///
/// If the descriptions do not fit together.
pub(crate) fn add_reflection(service: &Service, routes: &mut RoutesBuilder) -> Result<(), Error> {
    let builder = || {
        let builder = Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(CAPACITY_DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        // Of those that are described, the ones that are served are listed.
        names(service).into_iter().chain(OWN).fold(builder, Builder::with_service_name)
    };
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}

/// The routes on the HTTP port, and what answers plain requests without them.
pub(crate) fn http(service: &Service) -> (Router, api::plain::Plain) {
    let v1 = api::v1::Context::new(service);
    let plain = api::plain::Plain::new(service, &v1);
    let routes = Router::new()
        .merge(api::health::routes(service))
        .merge(api::json::routes(service))
        .merge(api::v1::routes_in(v1))
        .merge(service.authorizer().map(auth::routes).unwrap_or_default());
    (api::plain::bounded(routes), plain)
}

/// The routes on the admin port.
pub(crate) fn admin(service: &Service, metrics: Option<&Metrics>) -> Router {
    Router::new()
        .merge(api::health::routes(service))
        .merge(admin::metrics::routes(admin::metrics::PATH, metrics, service.statistics()))
        .merge(admin::status::routes(service.dashboard(), service.statistics()))
        .merge(admin::page::routes())
}

/// Whether a call of this path is a conversation, which may last for as long as the client likes.
pub(crate) fn is_long(path: &str) -> bool {
    const LONG: [&str; 3] = [
        "/envoy.service.rate_limit_quota.v3.",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.",
    ];
    LONG.iter().any(|long| path.starts_with(long))
}

/// Envoy's protocol files, compiled: see `tests/server/descriptors.rs`.
const DESCRIPTORS: &[u8] = include_bytes!("envoy.bin");

/// Services of gRPC itself.
const OWN: [&str; 3] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
