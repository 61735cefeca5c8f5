use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use sluicegate::key::KeyBuf;
use sluicegate::service::Acquire;
use sluicegate::store::{Store, Ticket};
use tower_service::Service;

use super::layer::PaceLayer;
use super::turn::PaceError;
use crate::call::{during, earlier, end, hold, left};
use crate::error::{BoxError, Refused};
use crate::layered::Layered;
use crate::outgoing::{OutgoingRequest, OutgoingView};
use crate::waiting::{ResponseFuture, Waiting};

/// What the charge is settled by when the response is there, or nobody waits for it any longer. A place of a limit of
/// concurrency is given back then.
pub enum PaceGuard<S: Store> {
    /// As it was admitted: taking the ticket out would move it once more.
    AtOnce(Acquire<S>),
    InTurn(Ticket<S>),
}

impl<S: Store> fmt::Debug for PaceGuard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaceGuard")
    }
}

impl<I, S, R> Service<R> for Layered<I, PaceLayer<S>>
where
    I: Service<R, Error: Into<BoxError>> + Clone,
    S: Store<Future: Send> + Clone + Send + Sync + 'static,
    R: OutgoingRequest,
{
    type Response = I::Response;
    type Error = BoxError;
    type Future = ResponseFuture<I, R, PaceGuard<S>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let PaceLayer { key, pacer } = &self.layer;
        let key = match KeyBuf::from_view(key, &OutgoingView::new(&request)) {
            Ok(key) => key,
            Err(missing) => {
                let reason = format!("it has no key to pace it by: {missing}");
                return ResponseFuture::failed(Refused::new(reason, None));
            }
        };
        let own = pacer.patience.left(Duration::ZERO);
        // A pacer for which nobody waits does not shorten the waits of other layers.
        let bound = own.filter(|own| !own.is_zero());
        let patience = earlier(earlier(own, left()), request.timeout());
        // Asked once: a limit may count refusals.
        let acquire = pacer.ask(&pacer.limiter(), key, 1, patience);
        if acquire.is_admitted() {
            let (response, _) = during(bound, || self.inner.call(request));
            return ResponseFuture::calling(response, PaceGuard::AtOnce(acquire), |held, _| {
                drop(held);
            });
        }
        hold();
        let turn = pacer.asking(acquire, key, 1, patience);
        let turn = async { turn.await.map(PaceGuard::InTurn).map_err(PaceError::into_error) };
        let clock = pacer.clock();
        // The layers around this one know the bound as well.
        let turn = during(bound, || Box::pin(turn)).0;
        let ends = bound.map(|_| end(&clock, patience.unwrap_or_default()));
        let waiting = Waiting::new(&mut self.inner, turn, request, &clock, ends);
        ResponseFuture::waiting(waiting, |held, _| drop(held))
    }
}
