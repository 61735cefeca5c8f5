use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use tonic::Status;

use super::answer::{answer, refused};
use super::failure::Failure;
use super::wire::Message;
use super::{message, timeout};
use crate::grpc::{LARGEST, Received, Unary, framed};
use crate::service::Service;

/// Answers calls of Envoy.
#[derive(Debug, Clone)]
pub(crate) struct Rls(Service);

impl Rls {
    pub(crate) fn new(service: &Service) -> Self {
        Self(service.clone())
    }

    async fn decide(&self, fields: &HeaderMap, bytes: &[u8]) -> Result<Bytes, Status> {
        let message = Message::read(bytes)
            .map_err(|malformed| self.unread(Status::internal(malformed.to_string())))?;
        let request = message::request(message)
            .map_err(|what| self.unread(Status::invalid_argument(what)))?;
        let answered = answer(&self.0, &request, deadline(&self.0, fields)).await;
        let answer = answered.map_err(|failure| status(&failure))?;
        Ok(framed(&message::response(&request, &answer, self.0.fields())))
    }

    /// Counts an answer to something that is no request.
    fn unread(&self, status: Status) -> Status {
        self.0.rls_counters().count_bad();
        status
    }
}

impl Unary for Rls {
    const SERVICE: &'static str = super::NAME;
    const PATH: &'static str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

    async fn answer(self, head: Parts, received: Received) -> Result<Bytes, Status> {
        match received {
            Received::Message(message) => self.decide(&head.headers, &message.bytes()).await,
            Received::TooLong => {
                let what = format!("the message is too large: expected at most {LARGEST} bytes");
                Ok(framed(&message::without_statuses(refused(&self.0, &what))))
            }
        }
    }
}

/// How long the decision about a call with these fields may take.
fn deadline(service: &Service, fields: &HeaderMap) -> Duration {
    let own = service.deadline();
    timeout::of(fields).map_or(own, |left| left.min(own))
}

fn status(failure: &Failure) -> Status {
    match failure {
        Failure::Bad(bad) => Status::invalid_argument(bad.to_string()),
        Failure::Undecided(undecided) => Status::unavailable(undecided.to_string()),
    }
}
