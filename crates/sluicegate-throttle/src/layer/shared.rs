use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use sluicegate_core::adapter::KeyHash;
use sluicegate_core::clock::Clock;
use tokio::runtime::Id as RuntimeId;

use super::observing::{Accuracy, FlowNames, Names, Observing};
use super::pending_starts::PendingStarts;
use super::processors::Processors;
use super::snapshot::UnreadCounts;
use super::sync::{Mutex, MutexGuard};
use super::turn;
use super::unit::{Measurement, Reported, Unit};
use crate::class::{Class, Classes};
use crate::error::ConfigError;
use crate::predict::Predictor;
use crate::scheduler::{Completion, Id, Instruction, Running, Scheduler, SchedulerBuilder, Shed};

/// What the services of a throttle share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) classes: Classes,
    /// All layers use the same one, so that a flow is the same in each of them.
    pub(super) hash: Arc<KeyHash>,
    pub(super) clock: Clock,
    pub(super) unit: Unit,
    pub(super) reported: Reported,
    pub(super) observing: Observing,
    /// Whether a request has met two layers of this throttle in different tasks.
    is_nested: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) scheduler: Scheduler,
    pub(super) predictor: Predictor,
    /// Where the capacity is a share of the processors.
    pub(super) processors: Option<Processors>,
    /// The waiting requests, by slot in the queue.
    pub(super) waiters: Vec<Option<Arc<Waiter>>>,
    pub(super) instructions: Vec<Instruction>,
    /// Of the tasks that start requests when the rate allows it, and answer those whose deadline passes. The first one
    /// does that, and the others do if it is late.
    pub(super) drainers: Vec<Alarm>,
    pub(super) unread: UnreadCounts,
    /// When to warn again about something that cannot be read, in microseconds.
    pub(super) warn_again: u64,
    pub(super) accuracy: Accuracy,
    /// How long a request is polled, smoothed over about sixteen of them, in microseconds.
    poll_time: f64,
    pub(super) pending_starts: PendingStarts,
    pub(super) flow_names: FlowNames,
}

impl Shared {
    pub(super) fn new(
        state: State,
        classes: Classes,
        clock: Clock,
        unit: Unit,
        reported: Reported,
        observing: Observing,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            classes,
            hash: Arc::new(KeyHash::new()),
            clock,
            unit,
            reported,
            observing,
            is_nested: AtomicBool::new(false),
        }
    }

    pub(super) fn note_nested(&self) {
        self.is_nested.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_nested(&self) -> bool {
        self.is_nested.load(Ordering::Relaxed)
    }

    /// A request has ended, or its client has gone. It was polled for `polled` microseconds.
    pub(super) fn end(
        self: &Arc<Self>,
        now: u64,
        running: Running,
        key: u64,
        polled: u64,
        reported: Option<u64>,
        completion: Completion,
    ) {
        let mut state = self.lock();
        let measured =
            Measurement { polled, held: now.saturating_sub(running.started()), reported };
        let actual = self.unit.cost(measured, self.reported);
        // If the client has gone, the request may have been cut short. Its cost may then raise the prediction but not
        // lower it, because a request that is too slow for its client is still expensive. A place is free again.
        let is_whole = completion != Completion::Cancelled || self.unit == Unit::PlaceTime;
        let is_known = |actual: &u64| is_whole || *actual > running.cost();
        if let Some(actual) = actual.filter(is_known) {
            state.predictor.learn_for(key, running.flow(), running.class(), actual);
            state.accuracy.learn(key, running.cost(), actual);
        }
        // Says how many handlers fit into a turn of a thread.
        // All requests together, not by route: it only has to say how many handlers fit into a turn of one millisecond.
        state.poll_time += (polled as f64 - state.poll_time) / 16.0;
        // The list goes along to the scheduler and comes back emptied, so nothing is allocated while the lock is held.
        let mut instructions = std::mem::take(&mut state.instructions);
        state.allow(now);
        state.scheduler.done(now, running, actual, completion, &mut instructions);
        let wakers = state.tell(instructions);
        self.let_go(state, wakers);
    }

    pub(super) fn has_capacity(&self) -> bool {
        self.lock().scheduler.is_empty()
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn new(
        scheduler: Scheduler,
        predictor: Predictor,
        processors: Option<Processors>,
    ) -> Self {
        Self {
            scheduler,
            predictor,
            processors,
            waiters: Vec::new(),
            instructions: Vec::new(),
            drainers: Vec::new(),
            unread: UnreadCounts::default(),
            warn_again: 0,
            accuracy: Accuracy::default(),
            poll_time: 0.0,
            pending_starts: PendingStarts::default(),
            flow_names: FlowNames::default(),
        }
    }

    /// Allows the scheduler to start as many requests as are polled in a turn of each runtime. In a thread whose turn is
    /// due, it is none.
    #[inline]
    pub(super) fn allow(&mut self, now: u64) {
        self.pending_starts.expire(now);
        let requests = if turn::is_due(now) { 0 } else { self.room() };
        self.scheduler.allow(requests);
    }

    fn room(&self) -> usize {
        let of_each = (turn::LONGEST as f64 / self.poll_time.max(1.0)) as usize;
        // At least one, or a handler that is slow once would stop everything. Those that were told and not polled yet fill
        // the turn that is to come.
        (of_each.max(1) * self.drainers.len().max(1)).saturating_sub(self.pending_starts.count())
    }

    /// When a drainer has something to do: zero for at once, where a request waits for nothing but a turn.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = self.scheduler.next_at();
        match self.scheduler.is_held() {
            true if self.room() > 0 => Some(0),
            // Those that were told may never be polled.
            true => {
                let until = self.pending_starts.until();
                Some(next.map_or(until, |next| next.min(until)))
            }
            false => next,
        }
    }

    /// Learns which processors can be used from the request that is served in this thread.
    #[inline]
    pub(super) fn follow_processors(&mut self, now: u64, out: &mut Vec<Instruction>) {
        let Some(processors) = &mut self.processors else { return };
        if processors.observe(now) {
            self.scheduler.change_rate(now, processors.cost_per_second(), out);
        }
    }

    /// Counts what could not be read. Returns the counts if they are to be told to the operator.
    pub(super) fn note_unread(&mut self, unread: UnreadCounts, now: u64) -> Option<UnreadCounts> {
        if unread.all() == 0 {
            return None;
        }
        self.unread.classes += unread.classes;
        self.unread.deadlines += unread.deadlines;
        self.unread.keys += unread.keys;
        // At most once a second, however many requests a client sends that cannot be read.
        let is_told = now >= self.warn_again;
        if is_told {
            self.warn_again = now.saturating_add(1_000_000);
        }
        is_told.then_some(self.unread)
    }

    /// Remembers the name of a waiting flow.
    pub(super) fn name_flow(&mut self, flow: u64, names: Option<&Names>, classes: &Classes) {
        let Some(key) = names.and_then(|names| names.flow) else { return };
        let scheduler = &self.scheduler;
        let flows = |rank| scheduler.flows(Class::at(rank as u8)).filter_map(|queued| queued.flow);
        self.flow_names.add(flow, key, || (0..classes.len()).flat_map(flows).collect());
    }

    pub(super) fn wait(&mut self, id: Id, waiter: &Arc<Waiter>) {
        // As long as the queue ever was. The slots are reused, so it does not grow with the number of requests.
        if self.waiters.len() <= id.slot() {
            self.waiters.resize(id.slot() + 1, None);
        }
        self.waiters[id.slot()] = Some(Arc::clone(waiter));
    }

    /// Tells queued requests whether they are started or refused. Returns the wakers to call once the lock is released.
    #[inline]
    pub(super) fn tell(&mut self, instructions: Vec<Instruction>) -> Vec<Waker> {
        if instructions.is_empty() {
            self.instructions = instructions;
            return Vec::new();
        }
        self.tell_each(instructions)
    }

    fn tell_each(&mut self, mut instructions: Vec<Instruction>) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for instruction in instructions.drain(..) {
            let (id, result) = match instruction {
                Instruction::Start(id, running) => {
                    self.pending_starts.add(running.started());
                    (id, Ok(running))
                }
                Instruction::Shed(id, shed) => (id, Err(shed)),
            };
            // Taken out at once: the slot may be given to another request before this one is polled.
            let waiter = self.waiters[id.slot()].take();
            wakers.extend(waiter.and_then(|waiter| waiter.tell(result)));
        }
        self.instructions = instructions;
        wakers
    }
}

impl Shared {
    /// Checks whether the settings can change to these.
    pub(super) fn check(&self, builder: SchedulerBuilder) -> Result<(), ConfigError> {
        self.lock().scheduler.check(builder)
    }

    /// Changes the settings.
    pub(super) fn reconfigure(
        self: &Arc<Self>,
        builder: SchedulerBuilder,
        processors: Option<&Processors>,
    ) -> Result<(), ConfigError> {
        let mut state = self.lock();
        let now = self.now();
        let mut instructions = std::mem::take(&mut state.instructions);
        state.allow(now);
        let changed = state.scheduler.reconfigure(now, builder, &mut instructions);
        if let (Ok(()), State { scheduler, processors: Some(known), .. }, Some(new)) =
            (&changed, &mut *state, processors)
        {
            known.change(new);
            scheduler.change_rate(now, known.cost_per_second(), &mut instructions);
        }
        let wakers = state.tell(instructions);
        self.let_go(state, wakers);
        changed
    }
}

/// When a drainer continues. An earlier moment wakes it.
#[derive(Debug)]
pub(super) struct Alarm {
    /// The runtime of the drainer. `None` for a thread of its own, where there is no runtime.
    pub(super) runtime: Option<RuntimeId>,
    pub(super) at: u64,
    pub(super) waker: Option<Waker>,
}

/// Tells a queued request whether it is started or shed. It is told once, whether or not it has been polled before,
/// so no wake-up is lost.
#[derive(Debug, Default)]
pub(super) struct Waiter(Mutex<WaiterState>);

#[derive(Debug, Default)]
struct WaiterState {
    result: Option<Result<Running, Shed>>,
    waker: Option<Waker>,
}

impl Waiter {
    /// Returns the waker to call after the lock of the queue has been released.
    pub(super) fn tell(&self, result: Result<Running, Shed>) -> Option<Waker> {
        let mut waiting = self.lock();
        waiting.result = Some(result);
        waiting.waker.take()
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Running, Shed>> {
        let mut waiting = self.lock();
        if let Some(result) = waiting.result.take() {
            return Poll::Ready(result);
        }
        match &mut waiting.waker {
            // `clone_from` does not touch the count of a waker that would wake the same task.
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The message that it has not read yet.
    pub(super) fn take(&self) -> Option<Result<Running, Shed>> {
        self.lock().result.take()
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.lock().waker.take()
    }

    fn lock(&self) -> MutexGuard<'_, WaiterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
