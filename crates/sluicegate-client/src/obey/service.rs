use std::task::{Context, Poll};

use tower_service::Service;

use super::layer::ObeyLayer;
use super::shared::{Answer, Permit, too_long, turn};
use crate::call::{during, earlier, end, hold, left};
use crate::error::BoxError;
use crate::layered::Layered;
use crate::outgoing::{OutgoingRequest, OutgoingResponse};
use crate::waiting::{ResponseFuture, Waiting};

impl<S, R> Service<R> for Layered<S, ObeyLayer>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse> + Clone,
    R: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R, Option<Permit>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let shared = &self.layer.0;
        let settings = &shared.settings;
        let server = shared.server(&request);
        let permit = match shared.ask(&server, false) {
            Answer::Send(permit) => Some(permit),
            // Of a server for which there is no room nothing is known: its requests go as they come.
            Answer::Full => None,
            Answer::Wait { time, is_final } => {
                let patience = earlier(left(), request.timeout());
                let longest = patience.map_or(settings.wait, |time| time.min(settings.wait));
                // To fail at once is kinder than to fail later: the caller may still ask somebody else.
                if longest.is_zero() || (is_final && time > longest) {
                    return ResponseFuture::failed(too_long(Some(time)));
                }
                hold();
                // The layers around this one know the bound as well.
                let turn = during(Some(settings.wait), || turn(shared.clone(), server, longest)).0;
                let ends = Some(end(&settings.clock, longest));
                let turn = Box::pin(turn);
                let waiting = Waiting::new(&mut self.inner, turn, request, &settings.clock, ends);
                return ResponseFuture::waiting(waiting, answered);
            }
        };
        let (response, _) = during(Some(settings.wait), || self.inner.call(request));
        ResponseFuture::calling(response, permit, answered)
    }
}

fn answered(permit: Option<Permit>, response: &impl OutgoingResponse) {
    if let Some(permit) = permit {
        permit.observe(response);
    }
}
