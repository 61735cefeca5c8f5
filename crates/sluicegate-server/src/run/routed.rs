//! Who answers a call: the routes, or what is quicker for a plain call of Envoy or question of a proxy.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use tonic::{Code, Status};
use tower_service::Service as _;

use super::activity::{Activity, InFlight, TrackedBody};
use super::calls::Calls;
use super::upload::{Upload, close};
use crate::api::plain::Plain;
use crate::auth::Forward;
use crate::grpc;
use crate::grpc::Reply;
use crate::health::{Health, Why};
use crate::rls::Rls;

/// What does not go through the routes of a port.
#[derive(Clone)]
pub(super) enum Shortcut {
    /// Plain calls of Envoy.
    Unary(Rls),
    /// Plain questions of proxies, if there are rules for them, and plain requests of others.
    Http(Option<Forward>, Plain),
}

/// Answers the calls of one connection.
pub(super) struct Routed {
    calls: Calls,
    shortcut: Option<Shortcut>,
    activity: Arc<Activity>,
}

impl Routed {
    pub(super) fn new(calls: Calls, shortcut: Option<Shortcut>, activity: Arc<Activity>) -> Self {
        Self { calls, shortcut, activity }
    }

    /// Notes a request in HTTP/1. Calls of HTTP/2 have bounds of their own: see `streams`.
    fn begin(&self, request: &Request<Incoming>) -> Option<InFlight> {
        (request.version() < Version::HTTP_2).then(|| self.activity.begin())
    }

    /// Answers when this is polled, as the routes do. `answering` also says whether the body of the request was read to its
    /// end; otherwise hyper ends the connection.
    fn answer(
        &self,
        in_flight: Option<InFlight>,
        answering: impl Future<Output = (Response<Body>, bool)> + Send + 'static,
    ) -> AnswerFuture {
        let is_last = self.calls.is_last();
        Box::pin(async move {
            let (mut answer, is_read) = answering.await;
            if is_last || !is_read {
                close(answer.headers_mut());
            }
            Ok(answer.map(|body| AnswerBody::Routed(TrackedBody::new(body, in_flight))))
        })
    }
}

/// Small, because hyper moves it.
pub(super) type AnswerFuture =
    Pin<Box<dyn Future<Output = io::Result<Response<AnswerBody>>> + Send>>;

impl Service<Request<Incoming>> for Routed {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = AnswerFuture;

    fn call(&self, request: Request<Incoming>) -> AnswerFuture {
        let in_flight = self.begin(&request);
        if matches!(self.shortcut, Some(Shortcut::Unary(_))) && request.version() < Version::HTTP_2
        {
            // The times of calls are bounded in HTTP/2 only, and gRPC has no answer in HTTP/1: the connection ends.
            return Box::pin(async { Err(io::ErrorKind::Unsupported.into()) });
        }
        match &self.shortcut {
            Some(Shortcut::Unary(rls)) if grpc::is_plain::<Rls, _>(&request) => {
                let answering = grpc::answer(rls.clone(), request);
                return Box::pin(async { Ok(answering.await.map(AnswerBody::Unary)) });
            }
            Some(Shortcut::Http(forward, plain)) => {
                if let Some(call) = plain.takes(&request) {
                    let (plain, mut body) = (plain.clone(), request.into_body());
                    return self.answer(in_flight, async move {
                        let answer = plain.answer(call, &mut body).await;
                        (answer, body.is_end_stream())
                    });
                }
                let form = forward.as_ref().and_then(|forward| forward.takes(&request));
                if let Some((forward, form)) = forward.as_ref().zip(form) {
                    // The body is no part of the question.
                    let (question, body) = request.into_parts();
                    let answering = forward.clone().answer(form, question, self.calls.peer().ip());
                    return self
                        .answer(in_flight, async move { (answering.await, body.is_end_stream()) });
                }
            }
            _ => {}
        }
        let mut calls = self.calls.clone();
        let (request, rest) = Upload::watch(request);
        // Routes are always ready. They are called when this is polled: see `streams`.
        Box::pin(async move {
            let Ok(mut response) = calls.call(request).await;
            rest.settle(response.headers_mut()).await;
            Ok(response.map(|body| AnswerBody::Routed(TrackedBody::new(body, in_flight))))
        })
    }
}

/// The body of an answer.
pub(super) enum AnswerBody {
    Unary(Reply),
    Routed(TrackedBody<Body>),
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.get_mut() {
            Self::Unary(reply) => Pin::new(reply).poll_frame(cx).map_err(|never| match never {}),
            Self::Routed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Unary(reply) => reply.is_end_stream(),
            Self::Routed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Unary(reply) => reply.size_hint(),
            Self::Routed(body) => body.size_hint(),
        }
    }
}

// Notes the answers to calls that fail before a decision, whoever gives them.

/// One reference of each connection, so that threads do not count the same references for each call.
type OwnHealth = Arc<Arc<Health>>;

/// Answers the calls of one connection, and notes those that fail.
pub(super) struct CountFailures {
    routed: Routed,
    health: OwnHealth,
}

impl CountFailures {
    pub(super) fn new(routed: Routed, health: Arc<Health>) -> Self {
        Self { routed, health: Arc::new(health) }
    }
}

impl Service<Request<Incoming>> for CountFailures {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = CountingFailures;

    fn call(&self, request: Request<Incoming>) -> CountingFailures {
        // Its refusals have any status.
        let is_question = request.uri().path().starts_with("/check");
        let health = Arc::clone(&self.health);
        CountingFailures { answering: self.routed.call(request), health, is_question }
    }
}

/// An answer that is to be noted.
pub(super) struct CountingFailures {
    answering: AnswerFuture,
    health: OwnHealth,
    is_question: bool,
}

impl Future for CountingFailures {
    type Output = io::Result<Response<AnswerBody>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answering.as_mut().poll(cx))?;
        note(&self.health, &answer, self.is_question);
        Poll::Ready(Ok(answer))
    }
}

fn note<B>(health: &Health, answer: &Response<B>, is_question: bool) {
    if let Some(Why(why)) = answer.extensions().get() {
        return health.failed("http", answer.status().as_str(), why);
    }
    let status = answer.status();
    if let Some(told) = Status::from_header_map(answer.headers()) {
        // A store that cannot decide is counted as that.
        if !matches!(told.code(), Code::Ok | Code::Unavailable) {
            health.failed("grpc", words(told.code()), &told.message().escape_debug());
        }
    } else if !is_question && is_failure(status) {
        health.failed("http", status.as_str(), &status.canonical_reason().unwrap_or_default());
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
