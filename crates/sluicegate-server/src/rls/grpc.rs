use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use sluicegate_throttle::grpc_timeout;
use tonic::Status;

use super::answer::{answer, unread};
use super::counters::Failure;
use super::message;
use super::wire::Message;
use crate::grpc::{LARGEST, Message as Received, Unary, framed};
use crate::service::Service;

/// Answers calls of Envoy.
#[derive(Debug, Clone)]
pub(crate) struct Rls(Service);

impl Rls {
    pub(crate) fn new(service: &Service) -> Self {
        Self(service.clone())
    }

    /// Decides about a message, and returns the answer in its frame.
    pub(super) async fn decide(&self, fields: &HeaderMap, bytes: &[u8]) -> Result<Bytes, Status> {
        let message = Message::read(bytes)
            .map_err(|malformed| self.unread(Status::internal(malformed.to_string())))?;
        let described = self.0.has_metadata().then_some(message.hits);
        let request = message::request(message)
            .map_err(|what| self.unread(Status::invalid_argument(what)))?;
        let answered = answer(&self.0, &request, deadline(&self.0, fields)).await;
        let answer = answered.map_err(|failure| status(&failure))?;
        let names = self.0.field_names();
        let fields = self.0.fields();
        Ok(framed(&message::response(&request, &answer, fields, names, described)))
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

    async fn answer(self, head: Parts, received: Option<Received>) -> Result<Bytes, Status> {
        let begun = self.0.statistics().map(|_| Instant::now());
        let answered = match received {
            Some(message) => self.decide(&head.headers, &message.bytes()).await,
            None => {
                let what = format!("the message is too large: expected at most {LARGEST} bytes");
                Ok(framed(&message::without_statuses(unread(&self.0, &what))))
            }
        };
        if let (Some(statistics), Some(begun)) = (self.0.statistics(), begun) {
            statistics.called(begun.elapsed());
        }
        answered
    }
}

/// How long the decision about a call with these fields may take.
fn deadline(service: &Service, fields: &HeaderMap) -> Duration {
    let own = service.deadline();
    timeout(fields).map_or(own, |left| left.min(own))
}

fn status(failure: &Failure) -> Status {
    match failure {
        Failure::Bad(bad) => Status::invalid_argument(bad.to_string()),
        Failure::Undecided(undecided) => Status::unavailable(undecided.to_string()),
    }
}

/// How long a decision may take so that the caller still gets it: three quarters of the time that it waits, by the
/// `grpc-timeout` of the call.
fn timeout(call: &HeaderMap) -> Option<Duration> {
    let waits = grpc_timeout::read(call.get("grpc-timeout")?.to_str().ok()?)?;
    Some(waits / 4 * 3)
}
