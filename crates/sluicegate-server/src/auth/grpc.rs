use axum::body::{Bytes, to_bytes};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use tonic::Status;

use super::authorizer::{Authorizer, NOT_NAMED, peer};
use super::message;
use super::wire::CheckRequest;
use crate::grpc::{LARGEST, Message, Unary, framed};

/// The largest body of a refusal, in bytes. Refusals are short.
const LARGEST_BODY: usize = 256 * 1024;

/// Answers calls of Envoy.
#[derive(Debug, Clone)]
pub(super) struct Authz(pub(super) Authorizer);

impl Authz {
    /// What the client gets, unless it may go ahead.
    async fn decide(&self, received: Option<Message>) -> Result<Response, Status> {
        let Some(message) = received else {
            let what = format!("the request is too large: expected at most {LARGEST} bytes\n");
            return Ok((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what).into_response());
        };
        let message = <CheckRequest as prost::Message>::decode(message.bytes())
            .map_err(|error| Status::internal(error.to_string()))?;
        match message::request(&message) {
            Ok(request) => Ok(self.0.decide(request).await),
            // An error would let the client through where Envoy has `failure_mode_allow`.
            Err(bad) if bad.is_client() => {
                Ok((StatusCode::BAD_REQUEST, format!("{bad}\n")).into_response())
            }
            Err(bad) => Err(Status::invalid_argument(bad.to_string())),
        }
    }
}

impl Unary for Authz {
    const SERVICE: &'static str = super::NAME;
    const PATH: &'static str = "/envoy.service.auth.v3.Authorization/Check";

    async fn answer(self, head: Parts, received: Option<Message>) -> Result<Bytes, Status> {
        if !peer(&head.extensions).is_some_and(|peer| self.0.believes(peer)) {
            return Err(Status::permission_denied(NOT_NAMED));
        }
        let (head, body) = self.decide(received).await?.into_parts();
        if head.status == StatusCode::SERVICE_UNAVAILABLE {
            // An error, so that Envoy does what its `failure_mode_allow` says.
            return Err(Status::unavailable("the store cannot decide"));
        }
        // The bodies are those of refusals, which are complete.
        let body = to_bytes(body, LARGEST_BODY).await.unwrap_or_default();
        Ok(framed(&message::response(&head, &body)))
    }
}
