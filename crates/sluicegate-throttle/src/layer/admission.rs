//! What to do with a request that arrives at a throttle, and its place in the queue.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::in_service::InService;
use super::observing::Observing;
use super::report::WaitSpan;
use super::requests::Described;
use super::shared::Shared;
use super::turn;
use super::unit::Unit;
use super::waiter::{Told, Waiter};
use crate::scheduler::{Id, Offer, Offered, Shed};

/// What to do with a request that arrives at a throttle.
#[derive(Debug)]
pub(super) enum Admission {
    Start(InService),
    Wait(Place),
    Shed(Shed),
}

impl Shared {
    pub(super) fn admit(self: &Arc<Self>, described: &Described) -> Admission {
        let Described { class, flow, key, timeout, partition, unread, ref names } = *described;
        // A rank below the lowest class counts as the lowest class.
        let class = class.min(self.classes.lowest());
        let mut state = self.lock();
        let now = self.clock.now();
        self.note_unread(&mut state, unread, now);
        let mut instructions = std::mem::take(&mut state.instructions);
        state.allow(turn::is_due(now));
        state.follow_processors(now, &mut instructions);
        let (cost, is_known) = match self.unit {
            Unit::Requests => (1, false),
            Unit::PollTime | Unit::PlaceTime | Unit::Reported => {
                let name =
                    || names.as_ref()?.key.as_ref().and_then(|key| self.observing.show.show(key));
                state.accuracy.see(key, name);
                let most = state.scheduler.bound();
                let (cost, is_known) = state.predictor.mean_for(key, flow, class);
                (cost.clamp(1, most), is_known)
            }
        };
        let deadline = timeout
            .map(|timeout| now.saturating_add(timeout.as_micros().try_into().unwrap_or(u64::MAX)));
        let offer = Offer { class, flow, cost, deadline, partition, key: Some(key) };
        if let Some(running) = state.scheduler.start_at_once(now, &offer, &mut instructions) {
            let wakers = state.tell(instructions);
            let is_marked = !is_known || state.scheduler.is_full() || self.is_nested();
            self.let_go(state, wakers);
            return Admission::Start(InService::at_once(self, running, key, now, is_marked));
        }
        let offered = state.scheduler.offer_again(now, offer, &mut instructions);
        let wakers = state.tell(instructions);
        let admission = match offered {
            Offered::Start(running) => {
                Admission::Start(InService::at_once(self, running, key, now, true))
            }
            Offered::Shed(shed) => {
                self.observing.report(&self.classes, &shed);
                Admission::Shed(shed)
            }
            Offered::Queued(id) => {
                let waiter = Arc::new(Waiter::default());
                state.wait(id, &waiter);
                state.name_flow(flow, names.as_deref(), &self.classes);
                let (shared, span) = (Arc::clone(self), WaitSpan::new());
                Admission::Wait(Place { shared, waiter, key, id: Some(id), span })
            }
        };
        self.let_go(state, wakers);
        admission
    }

    /// A request that was told to start is polled, so the next one can be told.
    fn polls(self: &Arc<Self>) {
        let mut state = self.lock();
        state.unpolled -= 1;
        if !state.scheduler.is_held() {
            return;
        }
        // This thread is going to run a handler, so the next request is started in the next turn.
        let mut wakers = Vec::new();
        if !turn::is_possible() {
            let mut instructions = std::mem::take(&mut state.instructions);
            state.allow(false);
            state.scheduler.drain(self.clock.now(), &mut instructions);
            wakers = state.tell(instructions);
        }
        self.let_go(state, wakers);
    }

    /// A queued request is dropped.
    fn leave(self: &Arc<Self>, id: Id, waiter: &Waiter) {
        let mut state = self.lock();
        let mut instructions = std::mem::take(&mut state.instructions);
        let now = self.clock.now();
        state.allow(turn::is_due(now));
        if state.scheduler.cancel(id) {
            state.waiters[id.slot()] = None;
        } else if let Some(Told::Start(running)) = waiter.take() {
            state.unpolled -= 1;
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
        match self.waiter.poll(cx) {
            Poll::Ready(told) => {
                self.id = None;
                Poll::Ready(self.span.in_scope(|| match told {
                    Told::Start(running) => {
                        self.shared.polls();
                        let Observing { name, meter, .. } = &self.shared.observing;
                        meter.waited(name, &self.shared.classes, &running);
                        Ok(InService::told(&self.shared, running, self.key))
                    }
                    Told::Shed(shed) => {
                        self.shared.observing.report(&self.shared.classes, &shed);
                        Err(shed)
                    }
                }))
            }
            Poll::Pending => {
                let state = self.shared.lock();
                self.shared.let_go(state, Vec::new());
                Poll::Pending
            }
        }
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
