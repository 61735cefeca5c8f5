use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header;
use pin_project_lite::pin_project;
use sluicegate_throttle::announce::Announcement;
use tower_service::Service;

use super::layer::AdaptiveThrottleLayer;
use super::server::{Ended, Shared, announced};
use crate::call::{Stage, watch};
use crate::error::{BoxError, Refused};
use crate::layered::Layered;
use crate::outgoing::{OutgoingRequest, OutgoingResponse};
use crate::table::RowKey;

impl<S, R> Service<R> for Layered<S, AdaptiveThrottleLayer>
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
        let shared = &self.layer.0;
        let key = shared.key(&request);
        let state = match shared.admit(key, &request, fastrand::f64()) {
            Err(refused) => State::Refused { error: Some(refused) },
            Ok(now) => {
                let (response, stage) = watch(|| self.inner.call(request));
                let flight = Flight::new(shared.clone(), key, now, stage);
                State::Sent { flight, response }
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
        Sent { flight: Flight, #[pin] response: F },
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
            StateProj::Sent { flight, response } => {
                let (result, stage) = watch(|| response.poll(cx));
                if stage != Stage::Silent {
                    flight.is_at(stage);
                }
                let result = ready!(result).map_err(Into::into);
                match &result {
                    Ok(response) => {
                        flight.ended(judge(response), announced(response.headers()));
                    }
                    Err(error) if Refused::find(&**error).is_some() => flight.was_held_back(),
                    Err(_) => flight.ended(Ended::Rejected, None),
                }
                Poll::Ready(result)
            }
        }
    }
}

/// Rejected are 429, 502, 503, 504, 403 that says when to come back, and `RESOURCE_EXHAUSTED` and `UNAVAILABLE` of gRPC.
fn judge(response: &impl OutgoingResponse) -> Ended {
    let headers = response.headers();
    let grpc = headers.get("grpc-status");
    let status = response.status().as_u16();
    let is_rejected = matches!(status, 429 | 502 | 503 | 504)
        || (status == 403 && headers.contains_key(header::RETRY_AFTER))
        || grpc.is_some_and(|status| status == "8" || status == "14");
    if is_rejected { Ended::Rejected } else { Ended::Accepted }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}

/// A request on its way to the server. Dropped before it has ended, its caller has given it up.
#[derive(Debug)]
pub(super) struct Flight {
    shared: Arc<Shared>,
    /// Keys are long, and futures are moved.
    key: RowKey,
    /// When it left; `None` while a layer further in holds it back, and when it has ended.
    sent: Option<u64>,
}

impl Flight {
    pub(super) fn new(shared: Arc<Shared>, key: RowKey, now: u64, stage: Stage) -> Self {
        let sent = (stage != Stage::Held).then_some(now);
        Self { shared, key, sent }
    }

    /// Notes what the layers further in say.
    pub(super) fn is_at(&mut self, stage: Stage) {
        match stage {
            Stage::Held => self.sent = None,
            Stage::Silent | Stage::Left => {
                self.sent.get_or_insert_with(|| self.shared.settings.clock.now());
            }
        }
    }

    /// Notes how it ended.
    pub(super) fn ended(&mut self, ended: Ended, announced: Option<Announcement>) {
        let sent = self.sent.take().unwrap_or_else(|| self.shared.settings.clock.now());
        self.shared.ended(self.key, sent, ended, announced);
    }

    /// Notes that it was not sent.
    pub(super) const fn was_held_back(&mut self) {
        self.sent = None;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.shared.given_up(self.key, sent);
        }
    }
}
