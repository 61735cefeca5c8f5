//! Who answers a call: the routes, or what is quicker for a plain call of Envoy or question of a proxy.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode, Version};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::Service;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Status};
use tower_service::Service as _;

use super::activity::{Activity, HoldingBody, InFlight};
use super::calls::this_is_long;
use super::upload::{Upload, close, close_unread};
use crate::api::plain::Plain;
use crate::auth::Forward;
use crate::grpc::Reply;
use crate::health::{Health, Why};
use crate::rls::Rls;
use crate::{grpc, rooms};

/// What does not go through the routes of a port.
#[derive(Clone)]
pub(super) enum Shortcut {
    /// Plain calls of Envoy.
    Unary(Rls),
    /// Plain questions of proxies, if there are rules for them, and plain requests of others.
    Http(Option<Forward>, Plain),
}

/// Answers the calls of one connection. A call that fails before a decision is noted, by whichever way it is answered.
pub(super) struct Routed {
    pub(super) router: Router,
    pub(super) shortcut: Option<Shortcut>,
    pub(super) activity: Arc<Activity>,
    pub(super) health: OwnHealth,
    /// Whether nobody asks if a connection in HTTP/2 is idle.
    pub(super) keeps_http_2: bool,
    /// Who calls.
    pub(super) peer: SocketAddr,
}

/// One reference of each connection, so that threads do not count the same references for each call.
type OwnHealth = Arc<Arc<Health>>;

/// The body of an answer.
type AnswerBody = Either<Reply, HoldingBody<Body, InFlight>>;

/// Small, because hyper moves it.
type AnswerFuture = Pin<Box<dyn Future<Output = io::Result<Response<AnswerBody>>> + Send>>;

impl Routed {
    /// Notes a request, unless nobody asks whether its connection is idle.
    fn begin(&self, request: &Request<Incoming>) -> Option<InFlight> {
        let is_noted = !self.keeps_http_2 || request.version() < Version::HTTP_2;
        is_noted.then(|| self.activity.begin())
    }

    /// Answers when this is polled, as the routes do. `answering` also says whether the body of the request was read to its
    /// end; otherwise hyper ends the connection.
    fn answer(
        &self,
        in_flight: Option<InFlight>,
        answering: impl Future<Output = (Response<Body>, bool)> + Send + 'static,
    ) -> AnswerFuture {
        let (is_last, activity) = (self.health.is_stopping(), Arc::clone(&self.activity));
        Box::pin(async move {
            let (mut answer, is_read) = answering.await;
            if !is_read {
                close_unread(answer.headers_mut(), &activity);
            } else if is_last {
                close(answer.headers_mut());
            }
            Ok(answer.map(|body| Either::Right(HoldingBody { body, held: in_flight })))
        })
    }

    /// Answers by what is quickest.
    fn answering(&self, request: Request<Incoming>) -> AnswerFuture {
        let in_flight = self.begin(&request);
        if matches!(self.shortcut, Some(Shortcut::Unary(_))) && request.version() < Version::HTTP_2
        {
            // The times of calls are bounded in HTTP/2 only, and gRPC has no answer in HTTP/1: the connection ends.
            return Box::pin(async { Err(io::ErrorKind::Unsupported.into()) });
        }
        match &self.shortcut {
            Some(Shortcut::Unary(rls)) if grpc::is_plain::<Rls, _>(&request) => {
                let answering = grpc::answer(rls.clone(), request);
                return Box::pin(async { Ok(answering.await.map(Either::Left)) });
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
                    let answering = forward.clone().answer(form, question, self.peer.ip());
                    return self
                        .answer(in_flight, async move { (answering.await, body.is_end_stream()) });
                }
            }
            _ => {}
        }
        let (mut router, health, peer) = (self.router.clone(), Arc::clone(&self.health), self.peer);
        let activity = Arc::clone(&self.activity);
        let (mut request, rest) = Upload::watch(request);
        // Routes are always ready. They are called when this is polled: see `calls`.
        Box::pin(async move {
            let is_http_2 = request.version() == Version::HTTP_2;
            if is_http_2 && rooms::is_long(request.uri().path()) {
                this_is_long();
            }
            // In HTTP/1, a server that stops says with each answer that it is the last on its connection, so that no client
            // sends a request that nobody reads. HTTP/2 has a message for that.
            let is_last = !is_http_2 && health.is_stopping();
            request.extensions_mut().insert(ConnectInfo(peer));
            // Where services of tonic look for it.
            let tcp = TcpConnectInfo { local_addr: None, remote_addr: Some(peer) };
            request.extensions_mut().insert(tcp);
            let Ok(mut response) = router.call(request).await;
            if is_last {
                close(response.headers_mut());
            }
            rest.settle(response.headers_mut(), &activity).await;
            Ok(response.map(|body| Either::Right(HoldingBody { body, held: in_flight })))
        })
    }
}

impl Service<Request<Incoming>> for Routed {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = CountingFailures;

    fn call(&self, request: Request<Incoming>) -> CountingFailures {
        // Its refusals have any status.
        let is_question = request.uri().path().starts_with("/check");
        let health = Arc::clone(&self.health);
        CountingFailures { answering: self.answering(request), health, is_question }
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
