use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use super::future::ResponseFuture;
use super::shared::{Answer, Permit, Shared};
use super::wait::{too_long, turn};
use crate::bound::{Stated, during, earlier, left};
use crate::departure;
use crate::error::BoxError;
use crate::outgoing::{OutgoingRequest, OutgoingResponse};

/// A service whose requests wait while their server asks for that; made by [`ObeyLayer`](super::ObeyLayer).
#[derive(Debug, Clone)]
pub struct Obey<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Obey<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S> Obey<S> {
    fn send<R>(&mut self, request: R, permit: Option<Permit>) -> ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        let (response, _) = during(Some(self.shared.wait), || self.inner.call(request));
        ResponseFuture::calling(response, permit)
    }
}

impl<S, R> Service<R> for Obey<S>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse> + Clone,
    R: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let server = self.shared.server(&request);
        match self.shared.ask(&server, false) {
            Answer::Send(permit) => self.send(request, Some(permit)),
            Answer::Full => self.send(request, None),
            Answer::Wait { time, is_final } => {
                let patience = earlier(left(), request.timeout());
                let longest = patience.map_or(self.shared.wait, |time| time.min(self.shared.wait));
                if longest.is_zero() || (is_final && time > longest) {
                    return ResponseFuture::refused(too_long(Some(time)));
                }
                departure::hold();
                // The layers around this one know the bound as well.
                let (turn, _) = during(Some(self.shared.wait), || {
                    Box::pin(turn(self.shared.clone(), server, longest))
                });
                let stated = Stated::by(&self.shared.clock, &request);
                // The place in the inner service that is ready stays for the next request.
                ResponseFuture::waiting(turn, self.inner.clone(), request, stated)
            }
        }
    }
}
