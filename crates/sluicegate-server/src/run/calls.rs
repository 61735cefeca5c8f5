//! What the calls of one connection have in common.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, Version};
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tonic::transport::server::TcpConnectInfo;
use tower_service::Service;

use super::upload::close;
use crate::health::Health;
use crate::rooms;

/// The routes for one connection: each request has the peer in its extensions.
#[derive(Clone)]
pub(super) struct Calls {
    router: Router,
    health: Arc<Health>,
    peer: SocketAddr,
}

impl Calls {
    pub(super) fn new(router: Router, health: Arc<Health>, peer: SocketAddr) -> Self {
        Self { router, health, peer }
    }

    /// Who calls.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the answer to a call in HTTP/1 is the last one on its connection.
    pub(super) fn is_last(&self) -> bool {
        self.health.is_stopping()
    }
}

impl<B> Service<Request<B>> for Calls
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = AnswerFuture<<Router as Service<Request<B>>>::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <Router as Service<Request<B>>>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let is_http_2 = request.version() == Version::HTTP_2;
        if is_http_2 && rooms::is_long(request.uri().path()) {
            this_is_long();
        }
        let is_last = !is_http_2 && self.is_last();
        request.extensions_mut().insert(ConnectInfo(self.peer));
        // Where services of tonic look for it.
        let tcp = TcpConnectInfo { local_addr: None, remote_addr: Some(self.peer) };
        request.extensions_mut().insert(tcp);
        AnswerFuture { answer: self.router.call(request), is_last }
    }
}

pin_project! {
    /// An answer. In HTTP/1, a server that stops says with each answer that it is the last on its connection, so that no
    /// client sends a request that nobody reads. HTTP/2 has a message for that.
    pub(super) struct AnswerFuture<F> {
        #[pin]
        answer: F,
        is_last: bool,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for AnswerFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Ok(mut answer) = ready!(this.answer.poll(cx));
        if *this.is_last {
            close(answer.headers_mut());
        }
        Poll::Ready(Ok(answer))
    }
}

// The calls of an HTTP/2 connection, each of which ends within a time.

/// How long a call may take, with the body that the client sends and the answer that it reads. Decisions have a deadline
/// of their own, which is shorter.
const SLOWEST: Duration = Duration::from_secs(120);

thread_local! {
    /// Whether the call that is polled at the moment is a conversation.
    static IS_LONG: Cell<bool> = const { Cell::new(false) };
}

/// Runs calls. A client that never sends the rest of its body, or never reads its answer, loses the call and not the
/// connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams;

/// Lets the call that begins now take as long as its client likes.
pub(super) fn this_is_long() {
    IS_LONG.set(true);
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, call: F) {
        tokio::spawn(async move {
            let mut call = pin!(call);
            // Most calls are answered at once, and need no timer. The first poll hands the request to the service.
            IS_LONG.set(false);
            let at_once = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready()));
            if at_once.await {
                return;
            }
            if IS_LONG.get() {
                call.await;
            } else if tokio::time::timeout(SLOWEST, call).await.is_err() {
                tracing::debug!("a call took too long");
            }
        });
    }
}
