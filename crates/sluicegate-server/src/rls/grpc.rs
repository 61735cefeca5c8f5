use std::time::Duration;

use axum::http::HeaderMap;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::{Request, Response, Status};

use super::answer::answer;
use super::failure::Failure;
use super::wire::Message;
use super::{message, timeout};
use crate::service::Service;

/// The largest message, in bytes. 64 descriptors of Envoy take a few KiB.
pub(super) const LARGEST: usize = 64 * 1024;

/// The gRPC service.
pub(super) fn server(service: &Service) -> RateLimitServiceServer<Rls> {
    RateLimitServiceServer::new(Rls(service.clone())).max_decoding_message_size(LARGEST)
}

/// Answers calls of Envoy.
pub(super) struct Rls(Service);

#[tonic::async_trait]
impl RateLimitService for Rls {
    async fn should_rate_limit(
        &self,
        call: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let (metadata, _, message) = call.into_parts();
        let request = message::request(Message::of(&message)).map_err(Status::invalid_argument)?;
        let deadline = deadline(&self.0, &metadata.into_headers());
        let answered = answer(&self.0, &request, deadline).await;
        answered
            .map(|answer| Response::new(message::response(&request, &answer, self.0.fields())))
            .map_err(|failure| status(&failure))
    }
}

/// How long the decision about a call with these fields may take.
pub(super) fn deadline(service: &Service, fields: &HeaderMap) -> Duration {
    let own = service.deadline();
    timeout::of(fields).map_or(own, |left| left.min(own))
}

pub(super) fn status(failure: &Failure) -> Status {
    match failure {
        Failure::Bad(bad) => Status::invalid_argument(bad.to_string()),
        Failure::Undecided(undecided) => Status::unavailable(undecided.to_string()),
    }
}
