use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::{Request, Response, Status};

use super::answer::answer;
use super::failure::Failure;
use super::{message, timeout};
use crate::service::Service;

/// The largest message, in bytes. 64 descriptors of Envoy take a few KiB.
const LARGEST: usize = 64 * 1024;

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
        let deadline =
            timeout::of(&call).map_or(self.0.deadline(), |left| left.min(self.0.deadline()));
        let message = call.into_inner();
        let request = message::request(&message).map_err(Status::invalid_argument)?;
        let answered = answer(&self.0, &request, deadline).await;
        answered
            .map(|answer| Response::new(message::response(&request, &answer, self.0.fields())))
            .map_err(|failure| status(&failure))
    }
}

fn status(failure: &Failure) -> Status {
    match failure {
        Failure::Bad(bad) => Status::invalid_argument(bad.to_string()),
        Failure::Undecided(undecided) => Status::unavailable(undecided.to_string()),
    }
}
