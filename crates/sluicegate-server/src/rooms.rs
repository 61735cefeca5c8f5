//! What is behind each port: one line for each room, so that a new one is one line more.

use axum::Router;
use tonic::service::RoutesBuilder;

use crate::admin::metrics::Metrics;
use crate::service::Service;
use crate::{admin, api, auth, rls};

/// The names of the gRPC services, for health.
pub(crate) fn names(service: &Service) -> Vec<&'static str> {
    [rls::NAME].into_iter().chain(service.authorizer().map(|_| auth::NAME)).collect()
}

/// The services on the gRPC port, besides health, which the server adds because it knows when it stops.
pub(crate) fn grpc(service: &Service, routes: &mut RoutesBuilder) {
    rls::add(service, routes);
    if let Some(authorizer) = service.authorizer() {
        auth::add(authorizer, routes);
    }
}

/// The routes on the HTTP port.
pub(crate) fn http(service: &Service) -> Router {
    let routes = Router::new()
        .merge(api::health::routes(service))
        .merge(api::json::routes(service))
        .merge(api::v1::routes(service))
        .merge(service.authorizer().map(auth::routes).unwrap_or_default());
    api::slow::bounded(routes)
}

/// The routes on the admin port.
pub(crate) fn admin(service: &Service, metrics: Option<&Metrics>) -> Router {
    Router::new()
        .merge(api::health::routes(service))
        .merge(admin::metrics::routes(metrics))
        .merge(admin::policies::routes(service))
}
