use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use sluicegate::key::KeyBuf;
use tower_service::Service;

use super::announced::Announced;
use super::shared::{Ended, Shared};
use crate::error::{BoxError, Refused};
use crate::outgoing::{OutgoingRequest, OutgoingResponse};

/// A service that does not send what its server would reject; made by [`ThrottleLayer`](super::ThrottleLayer).
#[derive(Debug, Clone)]
pub struct Throttle<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Throttle<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S, R> Service<R> for Throttle<S>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse>,
    R: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let key = self.shared.key(&request);
        let state = match self.shared.admit(&key, &request, fastrand::f64()) {
            Err(refused) => State::Refused { error: Some(refused) },
            Ok(()) => State::Sent {
                sent: Sent { shared: self.shared.clone(), key: Box::new(key), is_over: false },
                response: self.inner.call(request),
            },
        };
        ResponseFuture { state }
    }
}

/// A request that was sent. Dropped, it has ended without an answer.
#[derive(Debug)]
struct Sent {
    shared: Arc<Shared>,
    /// Keys are long: futures are moved.
    key: Box<KeyBuf>,
    is_over: bool,
}

impl Sent {
    fn ended(&mut self, ended: Ended, announced: Option<Announced>) {
        self.is_over = true;
        self.shared.ended(&self.key, ended, announced);
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.is_over {
            self.ended(Ended::Unknown, None);
        }
    }
}

pin_project! {
    /// The response, or [`Refused`].
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Sent { sent: Sent, #[pin] response: F },
        Refused { error: Option<Refused> },
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: OutgoingResponse,
    E: Into<BoxError>,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Refused { error } => {
                Poll::Ready(Err(error.take().expect("polled after it was ready").into()))
            }
            StateProj::Sent { sent, response } => {
                let result = ready!(response.poll(cx)).map_err(Into::into);
                match &result {
                    Ok(response) => {
                        sent.ended(judge(response), Announced::read(response.headers()));
                    }
                    Err(error) if Refused::find(&**error).is_some() => {
                        sent.ended(Ended::Unknown, None);
                    }
                    Err(_) => sent.ended(Ended::Rejected, None),
                }
                Poll::Ready(result)
            }
        }
    }
}

/// Rejected are 429, 502, 503, 504, and `RESOURCE_EXHAUSTED` and `UNAVAILABLE` of gRPC.
fn judge(response: &impl OutgoingResponse) -> Ended {
    let grpc = response.headers().get("grpc-status");
    let is_rejected = matches!(response.status().as_u16(), 429 | 502 | 503 | 504)
        || grpc.is_some_and(|status| status == "8" || status == "14");
    if is_rejected { Ended::Rejected } else { Ended::Accepted }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}
