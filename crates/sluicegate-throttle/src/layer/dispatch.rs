//! What to do with a request that arrives at a throttle, and its place in the queue.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::in_service::InService;
use super::observing::{Observing, WaitSpan};
use super::requests::Description;
use super::shared::{Shared, Waiter};
use super::turn;
use super::unit::Unit;
use crate::scheduler::{Id, Offer, Offered, Running, Shed};

/// What to do with a request. Adapters for frameworks only carry this out.
#[derive(Debug)]
pub(super) enum Dispatch {
    /// It is served now; uncounted if it is exempt, or was started by another layer of this throttle.
    Start(InService),
    Wait(Place),
    /// It is answered, and not served.
    Refuse(Shed),
}

impl Shared {
    pub(super) fn admit(self: &Arc<Self>, described: &Description) -> Dispatch {
        let Description { class, flow, key, timeout, partition, unread, ref names } = *described;
        // A rank below the lowest class counts as the lowest class.
        let class = class.min(self.classes.lowest());
        let mut state = self.lock();
        let now = self.clock.now();
        let unread = state.note_unread(unread, now);
        let mut instructions = std::mem::take(&mut state.instructions);
        state.allow(now);
        state.follow_processors(now, &mut instructions);
        let (cost, is_known) = match self.unit {
            Unit::Requests => (1, false),
            Unit::PollTime | Unit::PlaceTime | Unit::Reported => {
                let name =
                    || names.as_ref()?.key.as_ref().and_then(|key| self.observing.show.show(key));
                state.accuracy.see(key, name);
                // A prediction above the bound would shut a route for ever: nothing of it would run, and so nothing would
                // show that it has become cheaper.
                let most = state.scheduler.bound();
                let (cost, is_known) = state.predictor.mean_for(key, flow, class);
                (cost.clamp(1, most), is_known)
            }
        };
        let deadline = timeout
            .map(|timeout| now.saturating_add(timeout.as_micros().try_into().unwrap_or(u64::MAX)));
        let offer = Offer { class, flow, cost, deadline, partition, key: Some(key) };
        let offered = state.scheduler.offer(now, offer, &mut instructions);
        let wakers = state.tell(instructions);
        // What is told to subscribers is told without the lock: they may come back here, and take their time.
        let mut dispatch = match offered {
            Offered::Start(running) => {
                let is_marked = !is_known || state.scheduler.is_full() || self.is_nested();
                self.let_go(state, wakers);
                let running = InService::new(self, running, key, Some(now), is_marked);
                self.observing.warn_of_unread(unread);
                return Dispatch::Start(running);
            }
            Offered::Shed(shed) => Dispatch::Refuse(shed),
            Offered::Queued(id) => {
                // Registered under the lock under which it was queued. Told by another thread right after, it finds the
                // waiter.
                let waiter = Arc::new(Waiter::default());
                state.wait(id, &waiter);
                state.name_flow(flow, names.as_deref(), &self.classes);
                let (shared, span) = (Arc::clone(self), WaitSpan::default());
                Dispatch::Wait(Place { shared, waiter, key, id: Some(id), span })
            }
        };
        self.let_go(state, wakers);
        self.observing.warn_of_unread(unread);
        match &mut dispatch {
            Dispatch::Wait(place) => place.span = WaitSpan::new(),
            Dispatch::Refuse(shed) => self.observing.report(&self.classes, shed),
            Dispatch::Start(_) => {}
        }
        dispatch
    }

    /// A request that was told to start is polled, so the next one can be told.
    fn polls(self: &Arc<Self>, running: &Running) {
        let mut state = self.lock();
        let now = self.clock.now();
        state.pending_starts.polled(running.started(), now);
        if !state.scheduler.is_held() {
            return;
        }
        // This thread is going to run a handler, so the next request is started in the next turn.
        let mut wakers = Vec::new();
        if !turn::is_possible() {
            let mut instructions = std::mem::take(&mut state.instructions);
            state.allow(now);
            state.scheduler.drain(now, &mut instructions);
            wakers = state.tell(instructions);
        }
        self.let_go(state, wakers);
    }

    /// A queued request is dropped.
    fn leave(self: &Arc<Self>, id: Id, waiter: &Waiter) {
        let mut state = self.lock();
        let mut instructions = std::mem::take(&mut state.instructions);
        let now = self.clock.now();
        state.allow(now);
        if state.scheduler.cancel(id) {
            state.waiters[id.slot()] = None;
        // No longer queued, so it was told something. If it was to start, the place is taken in its name and has to go
        // back, or it would be lost for ever.
        } else if let Some(Ok(running)) = waiter.take() {
            // It was told to start and has not been polled since: whoever is next may run in its place.
            state.pending_starts.left(running.started());
            state.scheduler.not_started(now, running, &mut instructions);
        }
        let wakers = state.tell(instructions);
        self.let_go(state, wakers);
    }
}

/// A place in the queue. Dropped, it is free at once.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    waiter: Arc<Waiter>,
    key: u64,
    id: Option<Id>,
    span: WaitSpan,
}

impl Place {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<InService, Shed>> {
        let Poll::Ready(result) = self.waiter.poll(cx) else {
            // A drainer is needed in the runtime that polls, which may be another one than that of the arrival.
            let state = self.shared.lock();
            self.shared.let_go(state, Vec::new());
            return Poll::Pending;
        };
        self.id = None;
        // First, so that the place is free again if a waker, a subscriber or a recorder panics.
        let result =
            result.map(|running| InService::new(&self.shared, running, self.key, None, true));
        let Observing { name, meter, .. } = &self.shared.observing;
        Poll::Ready(self.span.in_scope(|| {
            match result.as_ref().map(InService::running) {
                Ok(Some(running)) => {
                    self.shared.polls(running);
                    meter.waited(name, &self.shared.classes, running);
                }
                Ok(None) => {}
                Err(shed) => self.shared.observing.report(&self.shared.classes, shed),
            }
            result
        }))
    }
}

#[cfg(all(test, loom))]
impl Place {
    pub(super) fn waiter(&self) -> Arc<Waiter> {
        Arc::clone(&self.waiter)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.leave(id, &self.waiter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Scheduler;

    #[test]
    fn a_queued_request_takes_at_most_three_hundred_bytes() {
        // Its row in the queue and the list of free rows, its place, what it is told by with two counts, and a pointer
        // to that.
        let told = size_of::<Waiter>() + 2 * size_of::<usize>() + size_of::<Option<Arc<Waiter>>>();
        let bytes = Scheduler::BYTES_PER_REQUEST + size_of::<Place>() + told;
        assert!(bytes <= 300, "{bytes}");
    }
}
