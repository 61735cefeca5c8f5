//! Notes the answers to calls that fail before a decision, whoever gives them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::Service;
use tonic::Code;

use super::routed::{Answered, Answering, Routed};
use crate::failed::Why;
use crate::service;

/// Answers the calls of one connection, and notes those that fail.
pub(super) struct Counted {
    routed: Routed,
    /// Of this connection alone, so that no other thread counts its clones.
    service: Arc<service::Service>,
}

impl Counted {
    pub(super) fn new(routed: Routed, service: service::Service) -> Self {
        Self { routed, service: Arc::new(service) }
    }
}

impl Service<Request<Incoming>> for Counted {
    type Response = Response<Answered>;
    type Error = io::Error;
    type Future = Counting;

    fn call(&self, request: Request<Incoming>) -> Counting {
        // Its refusals have any status.
        let is_question = request.uri().path().starts_with("/check");
        let service = Arc::clone(&self.service);
        Counting { answering: self.routed.call(request), service, is_question }
    }
}

/// An answer that is to be noted.
pub(super) struct Counting {
    answering: Answering,
    service: Arc<service::Service>,
    is_question: bool,
}

impl Future for Counting {
    type Output = io::Result<Response<Answered>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answering.as_mut().poll(cx))?;
        note(&self.service, &answer, self.is_question);
        Poll::Ready(Ok(answer))
    }
}

fn note<B>(service: &service::Service, answer: &Response<B>, is_question: bool) {
    if let Some(Why(why)) = answer.extensions().get() {
        return service.failed("http", answer.status().as_str(), why);
    }
    let status = answer.status();
    if let Some(code) = answer.headers().get("grpc-status") {
        let code = Code::from_bytes(code.as_bytes());
        // A store that cannot decide is counted as that.
        if !matches!(code, Code::Ok | Code::Unavailable) {
            let why = answer.headers().get("grpc-message").map(|why| why.as_bytes());
            service.failed("grpc", words(code), &why.unwrap_or_default().escape_ascii());
        }
    } else if !is_question && is_failure(status) {
        service.failed("http", status.as_str(), &status.canonical_reason().unwrap_or_default());
    }
}

/// Whether the status says that nothing was decided. 429 and 422 are decisions, and 503 is the store's.
fn is_failure(status: StatusCode) -> bool {
    !status.is_success()
        && !matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::UNPROCESSABLE_ENTITY
                | StatusCode::SERVICE_UNAVAILABLE
        )
}

/// The code as metrics name it.
fn words(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}
