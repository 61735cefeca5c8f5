use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use sluicegate::key::KeyBuf;
use tower_service::Service;

use super::gate::Reserve;
use super::layer::{Shared, SmoothLayer};
use super::line::{Answer, Line, too_long, wait_for, wait_in_line};
use crate::call::{during, earlier, end, hold, left};
use crate::error::{BoxError, Refused};
use crate::layered::Layered;
use crate::outgoing::{OutgoingRequest, OutgoingView};
use crate::waiting::{ResponseFuture, Turn, Waiting};

impl<S, R, Req> Service<Req> for Layered<S, SmoothLayer<R>>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    R: Reserve + Clone + Send + Sync + 'static,
    Req: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, Req, ()>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let shared = &self.layer.0;
        let clock = &shared.settings.clock;
        // A layer that lets no request wait does not shorten the waits of others.
        let own = shared.settings.patience.left(Duration::ZERO);
        let bound = own.filter(|patience| !patience.is_zero());
        match shared.turn(&request, own) {
            Err(refused) => ResponseFuture::failed(refused),
            Ok(None) => {
                let (response, _) = during(bound, || self.inner.call(request));
                ResponseFuture::calling(response, (), |(), _| {})
            }
            Ok(Some(turn)) => {
                hold();
                // The layers around this one know the bound as well.
                let turn = during(bound, || turn).0;
                let ends = bound.map(|bound| end(clock, bound));
                let waiting = Waiting::new(&mut self.inner, turn, request, clock, ends);
                ResponseFuture::waiting(waiting, |(), _| {})
            }
        }
    }
}

impl<R: Reserve + Clone + Send + Sync + 'static> Shared<R> {
    /// The wait of a request; `None` if it may go.
    fn turn(
        self: &Arc<Self>,
        request: &impl OutgoingRequest,
        own: Option<Duration>,
    ) -> Result<Option<Turn<()>>, Refused> {
        let view = OutgoingView::new(request);
        let line = self.line(&view)?;
        let (clock, permits) = (self.settings.clock.clone(), (self.settings.cost)(&view));
        let patience = earlier(earlier(own, left()), request.timeout());
        let answer = match line.is_empty() {
            true => line.ask(&clock, permits, patience),
            false => Answer::AskAgain(Duration::ZERO),
        };
        match answer {
            Answer::Go => return Ok(None),
            Answer::Refuse(wait) => return Err(too_long(wait)),
            Answer::AskAgain(_) if patience == Some(Duration::ZERO) => return Err(too_long(None)),
            Answer::Wait(..) | Answer::AskAgain(_) => {}
        }
        let Some(place) = WaitingPlace::enter(self) else {
            return Err(Refused::new("too many requests wait for their turn", None));
        };
        Ok(Some(Box::pin(async move {
            let _place = place;
            match answer {
                Answer::Wait(wait, reservation) => wait_for(clock, wait, reservation).await,
                _ => wait_in_line(line, clock, permits, patience).await?,
            }
            Ok(())
        })))
    }

    fn line(&self, view: &OutgoingView<'_>) -> Result<Arc<Line<R>>, Refused> {
        let key = match &self.settings.key {
            None => KeyBuf::new(),
            Some(key) => KeyBuf::from_view(key, view).map_err(|missing| {
                Refused::new(format!("it has no key to smooth it by: {missing}"), None)
            })?,
        };
        let now = self.settings.clock.now();
        let line = self.table.with(self.table.key(&key), now, |row| {
            row.used = now;
            let new = || Arc::new(Line::new(self.settings.method.clone()));
            row.line.get_or_insert_with(new).clone()
        });
        line.ok_or_else(|| Refused::new("requests of too many keys wait for their turn", None))
    }
}

/// Counts as a waiting request until it is dropped.
struct WaitingPlace<R>(Arc<Shared<R>>);

impl<R> WaitingPlace<R> {
    fn enter(shared: &Arc<Shared<R>>) -> Option<Self> {
        let most = shared.settings.most_waiting;
        let more = |waiting| (waiting < most).then_some(waiting + 1);
        let entered = shared.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.ok().map(|_| Self(shared.clone()))
    }
}

impl<R> Drop for WaitingPlace<R> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
