use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::announced::Announced;
use super::shared::{Ended, Shared};
use crate::error::{BoxError, Refused};
use crate::outgoing::{OutgoingRequest, OutgoingResponse};
use crate::table::RowKey;

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
        let state = match self.shared.admit(key, &request, fastrand::f64()) {
            Err(refused) => State::Refused { error: Some(refused) },
            Ok(()) => {
                State::Sent { shared: self.shared.clone(), key, response: self.inner.call(request) }
            }
        };
        ResponseFuture { state }
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
        /// Keys are long, and futures are moved.
        Sent { shared: Arc<Shared>, key: RowKey, #[pin] response: F },
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
            StateProj::Sent { shared, key, response } => {
                let result = ready!(response.poll(cx)).map_err(Into::into);
                match &result {
                    Ok(response) => {
                        let announced = Announced::read(response.headers());
                        shared.ended(*key, judge(response), announced);
                    }
                    // It was not sent.
                    Err(error) if Refused::find(&**error).is_some() => {}
                    Err(_) => shared.ended(*key, Ended::Rejected, None),
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
