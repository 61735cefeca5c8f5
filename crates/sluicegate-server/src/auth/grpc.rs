use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use envoy_types::pb::envoy::service::auth::v3::authorization_server::{
    Authorization, AuthorizationServer,
};
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse};
use tonic::{Request, Response, Status};

use super::authorizer::{Authorizer, NOT_NAMED, peer};
use super::message;

/// The largest message, in bytes. Envoy sends at most 60 KiB of header fields by default.
const LARGEST: usize = 256 * 1024;

/// The gRPC service.
pub(super) fn server(authorizer: &Authorizer) -> AuthorizationServer<Authz> {
    AuthorizationServer::new(Authz(authorizer.clone())).max_decoding_message_size(LARGEST)
}

/// Answers calls of Envoy.
pub(super) struct Authz(Authorizer);

#[tonic::async_trait]
impl Authorization for Authz {
    async fn check(&self, call: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        if !peer(call.extensions()).is_some_and(|peer| self.0.believes(peer)) {
            return Err(Status::permission_denied(NOT_NAMED));
        }
        let request = message::request(call.into_inner());
        let answer = match request {
            Ok(request) => self.0.decide(request).await,
            // An error would let the client through where Envoy has `failure_mode_allow`.
            Err(bad) if bad.is_of_client() => {
                (StatusCode::BAD_REQUEST, format!("{bad}\n")).into_response()
            }
            Err(bad) => return Err(Status::invalid_argument(bad.to_string())),
        };
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::SERVICE_UNAVAILABLE {
            // An error, so that Envoy does what its `failure_mode_allow` says.
            return Err(Status::unavailable("the store cannot decide"));
        }
        // The bodies are those of refusals, which are complete.
        let body = to_bytes(body, LARGEST).await.unwrap_or_default();
        Ok(Response::new(message::response(&head, &body)))
    }
}
