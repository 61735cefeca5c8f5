use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use sluicegate::clock::Clock;
use sluicegate::key::KeyBuf;
use tower_service::Service;

use super::future::{ResponseFuture, Sending, Turn};
use super::gate::Reserve;
use super::line::{Line, LineRow, Told, too_long, wait_for, wait_in_line};
use crate::bound::{Stated, during, earlier, end, left};
use crate::departure;
use crate::error::{BoxError, Refused};
use crate::outgoing::{AnyKey, OutgoingRequest, OutgoingView};
use crate::pace::Patience;
use crate::table::Table;

/// A service whose requests wait until a smooth method lets them go; made by [`SmoothLayer`](super::SmoothLayer).
pub struct Smooth<S, R> {
    inner: S,
    shared: Arc<Shared<R>>,
}

/// What all services of a layer share.
pub(super) struct Shared<R> {
    pub(super) table: Table<LineRow<R>>,
    /// What each key begins with.
    pub(super) method: R,
    pub(super) key: Option<AnyKey>,
    pub(super) patience: Patience,
    pub(super) most_waiting: usize,
    pub(super) waiting: AtomicUsize,
    pub(super) cost: fn(&OutgoingView<'_>) -> u32,
    pub(super) clock: Clock,
}

impl<S, R> Smooth<S, R> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<R>>) -> Self {
        Self { inner, shared }
    }
}

impl<S: Clone, R> Clone for Smooth<S, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: self.shared.clone() }
    }
}

impl<S, R> fmt::Debug for Smooth<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Smooth")
    }
}

impl<S, R, Req> Service<Req> for Smooth<S, R>
where
    S: Service<Req, Error: Into<BoxError>> + Clone,
    R: Reserve + Clone + Send + Sync + 'static,
    Req: OutgoingRequest,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let bound = self.shared.bound();
        match self.shared.turn(&request) {
            None => ResponseFuture::calling(during(bound, || self.inner.call(request)).0),
            Some(turn) => {
                departure::hold();
                let stated = Stated::by(&self.shared.clock, &request);
                let ends = bound.map(|bound| end(&self.shared.clock, bound));
                let sending = Sending {
                    // The place in the inner service that is ready stays for the next request.
                    service: self.inner.clone(),
                    request,
                    stated,
                    ends,
                };
                ResponseFuture::waiting(during(bound, || turn).0, sending)
            }
        }
    }
}

impl<R: Reserve + Clone + Send + Sync + 'static> Shared<R> {
    /// How long the layer lets a request wait. A layer that lets none wait does not shorten the waits of others.
    fn bound(&self) -> Option<Duration> {
        self.patience.left(Duration::ZERO).filter(|patience| !patience.is_zero())
    }

    /// The wait of a request, or its refusal; `None` if it may go.
    fn turn(self: &Arc<Self>, request: &impl OutgoingRequest) -> Option<Turn> {
        let view = OutgoingView::new(request);
        let line = match self.line(&view) {
            Ok(line) => line,
            Err(refused) => return Some(refuse(refused)),
        };
        let (clock, permits) = (self.clock.clone(), (self.cost)(&view));
        let own = self.patience.left(Duration::ZERO);
        let patience = earlier(earlier(own, left()), request.timeout());
        let told = match line.is_empty() {
            true => line.ask(&clock, permits, patience),
            false => Told::AskAgain(Duration::ZERO),
        };
        let waits: Turn = match told {
            Told::Go => return None,
            Told::Refused(wait) => return Some(refuse(too_long(wait))),
            Told::AskAgain(_) if patience == Some(Duration::ZERO) => {
                return Some(refuse(too_long(None)));
            }
            Told::Wait(wait, reservation) => Box::pin(async move {
                wait_for(clock, wait, reservation).await;
                Ok(())
            }),
            Told::AskAgain(_) => Box::pin(wait_in_line(line, clock, permits, patience)),
        };
        let Some(waiting) = Waiting::enter(self) else {
            return Some(refuse(Refused::new("too many requests wait for their turn", None)));
        };
        Some(Box::pin(async move {
            let result = waits.await;
            drop(waiting);
            result
        }))
    }

    fn line(&self, view: &OutgoingView<'_>) -> Result<Arc<Line<R>>, Refused> {
        let key = match &self.key {
            None => KeyBuf::new(),
            Some(key) => KeyBuf::from_view(key, view).map_err(|missing| {
                Refused::new(format!("it has no key to smooth it by: {missing}"), None)
            })?,
        };
        let now = self.clock.now();
        let line = self.table.with(self.table.key(&key), now, |row| {
            row.used = now;
            let new = || Arc::new(Line::new(self.method.clone()));
            row.line.get_or_insert_with(new).clone()
        });
        line.ok_or_else(|| Refused::new("requests of too many keys wait for their turn", None))
    }
}

fn refuse(refused: Refused) -> Turn {
    Box::pin(std::future::ready(Err(refused)))
}

/// Counts as a waiting request until it is dropped.
struct Waiting<R>(Arc<Shared<R>>);

impl<R> Waiting<R> {
    fn enter(shared: &Arc<Shared<R>>) -> Option<Self> {
        let more = |waiting| (waiting < shared.most_waiting).then_some(waiting + 1);
        let entered = shared.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.ok().map(|_| Self(shared.clone()))
    }
}

impl<R> Drop for Waiting<R> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
