use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use super::future::{Hedging, ResponseFuture};
use super::shared::Shared;
use crate::departure::{Departing, Stage, watch};
use crate::error::BoxError;
use crate::marker::{self, Hedged};
use crate::outgoing::{OutgoingResponse, ReplayRequest};

/// A service that sends copies of requests whose responses are late; made by [`HedgeLayer`](super::HedgeLayer).
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    inner: Departing<S>,
    /// Without it, requests pass as they are.
    shared: Option<Arc<Shared>>,
}

impl<S> Hedge<S> {
    pub(super) const fn new(inner: S, shared: Option<Arc<Shared>>) -> Self {
        Self { inner: Departing(inner), shared }
    }
}

impl<S, R> Service<R> for Hedge<S>
where
    S: Service<R, Error: Into<BoxError>, Response: OutgoingResponse> + Clone,
    R: ReplayRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: R) -> Self::Future {
        let Some(shared) = &self.shared else {
            return ResponseFuture::new(self.inner.call(request), None);
        };
        if marker::mark(&mut request, Hedged) {
            return ResponseFuture::new(self.inner.call(request), None);
        }
        let may_repeat = shared.repeatable.holds(&request);
        let watched = shared.watch(&request);
        let patience = request.timeout();
        let copy = if may_repeat { request.try_clone() } else { None };
        let copy = copy.map(|copy| (self.inner.clone(), copy));
        let mut hedging = Box::new(Hedging::new(watched, copy, patience));
        let call = || marker::inside::<Hedged, _>(|| self.inner.call(request));
        let (response, stage) = watch(call);
        if stage == Stage::Left {
            hedging.leaves();
        }
        ResponseFuture::new(response, Some(hedging))
    }
}
