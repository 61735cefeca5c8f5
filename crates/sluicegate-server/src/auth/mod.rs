//! Decisions about requests that a proxy asks about before it passes them on.
//!
//! The rules of a file decide about the request that the client has sent to the proxy. It is rebuilt from what the proxy
//! says about it, so rules read the method, path, host, header fields and client address as if they ran in the proxy.
//! Only [named proxies](crate::ServiceBuilder::proxies) are believed.
//!
//! - [`routes`]: forward auth over HTTP, for Traefik, Caddy, APISIX, HAProxy, nginx's `auth_request` and Envoy's HTTP
//!   `ext_authz`.
//! - [`add`]: Envoy's `ext_authz` over gRPC.
//!
//! A proxy asks once, before the response is known. So a rule that counts responses by their status counts every request, and a
//! limit of requests in flight lets each one go at once.

mod authorizer;
mod form;
mod grpc;
mod message;
mod routes;
mod wire;

use tonic::service::RoutesBuilder;

pub use self::authorizer::{Authorizer, DEGRADED};
use self::grpc::Authz;
pub(crate) use self::routes::Forward;
pub use self::routes::{STATUS, routes};
use crate::grpc::Routed;

/// The name of the gRPC service.
pub const NAME: &str = "envoy.service.auth.v3.Authorization";

/// Adds Envoy's `ext_authz` to a server's routes. A request whose message has more than 1 MiB is refused with 431.
pub fn add(authorizer: &Authorizer, routes: &mut RoutesBuilder) {
    routes.add_service(Routed(Authz(authorizer.clone())));
}
