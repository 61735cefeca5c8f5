use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sluicegate_core::Limit;
use sluicegate_core::adapter::breaker::{Backoff, Breaker};
use sluicegate_core::adapter::{Background, Charge, Debit, Outcome, Receipt, Reservation};
use sluicegate_core::key::{KeyBuf, KeySecret};

use crate::counts::Counters;
use crate::decide::{Job, Process, SKEW};
use crate::entry::Entry;
use crate::flight::{self, Flight};
use crate::places::Places;
use crate::queue::{Key, Queue};
use crate::row::Tag;
use crate::runtime::Runtime;
use crate::time::EngineTime;

/// What all clones of a store share.
pub(crate) struct Shared<E> {
    pub(crate) engine: E,
    pub(crate) prefix: String,
    pub(crate) secret: Option<KeySecret>,
    pub(crate) process: Process,
    /// Numbers the writes of this process.
    pub(crate) writes: AtomicU32,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) time: Mutex<Option<EngineTime>>,
    pub(crate) places: Mutex<Places>,
    pub(crate) is_renewing: AtomicBool,
    pub(crate) runtime: Runtime,
    pub(crate) breaker: Arc<Breaker>,
    /// Grows with each failure that was counted, so that calls that fail together count once.
    pub(crate) epoch: AtomicU32,
    pub(crate) background: Arc<Background>,
    pub(crate) backoff: Backoff,
    pub(crate) counters: Counters,
    /// How long a decision may take.
    pub(crate) deadline: Duration,
    /// How long work in the background may take.
    pub(crate) grace: Duration,
    /// For how long a row is believed that refuses.
    pub(crate) refusals: Duration,
}

impl<E> Shared<E> {
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(crate) fn key(&self, key: &KeyBuf, limit: &Limit) -> Key {
        key.row_name(&self.prefix, self.secret.as_ref(), limit.id()).into()
    }

    pub(crate) fn keys(&self, charge: &Charge) -> Vec<Key> {
        charge.debits().map(|debit| self.key(&debit.key, &debit.limit)).collect()
    }

    /// A tag for the next write.
    pub(crate) fn tag(&self) -> Tag {
        Tag::of(self.process.number, self.writes.fetch_add(1, Ordering::Relaxed))
    }

    /// The time for a decision: the engine's, as far as it has one, or the machine's. A test turns its own.
    pub(crate) fn now(&self) -> u64 {
        self.bounds_by(|time, machine| (time.at(machine), 0)).0
    }

    /// The earliest and the latest time that the engine may show.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        self.bounds_by(EngineTime::bounds)
    }

    fn bounds_by(&self, by: impl FnOnce(&EngineTime, u64) -> (u64, u64)) -> (u64, u64) {
        let machine = self.runtime.clock.now();
        match (&*lock(&self.time), self.runtime.clock.as_manual()) {
            (Some(time), None) => by(time, machine),
            // The clock of this process goes on evenly from its start. What machines agree about is the system's time,
            // which is set right while processes run.
            (None, None) => (system_time(), system_time()),
            (_, Some(_)) => (machine, machine),
        }
    }

    /// How far processes disagree about the time at most, in microseconds. Each knows an engine's clock within half a round
    /// trip, and servers of one engine, or one and the next, may differ a little. The tolerance is no larger than that:
    /// a clock that is set back by less keeps what is spent refused until it shows the old time again.
    pub(crate) fn skew(&self) -> u64 {
        const OF_ENGINES: u64 = 1_000_000;
        let of_trips =
            u64::try_from(self.deadline.as_micros()).unwrap_or(u64::MAX).saturating_mul(2);
        match &*lock(&self.time) {
            Some(_) => of_trips.clamp(OF_ENGINES, SKEW),
            None => SKEW,
        }
    }

    /// Learns the engine's time from an answer to a question that was sent at that time of the machine's clock.
    pub(crate) fn learn(&self, sent: u64, engine: Option<Duration>) {
        let Some(engine) = engine else { return };
        let received = self.runtime.clock.now();
        let mut time = lock(&self.time);
        *time = Some(EngineTime::learn(*time, (sent, received), engine));
    }
}

/// The system's time, in microseconds since the Unix epoch.
fn system_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The limit's identity, which the key of a row ends with.
pub(crate) fn limit_of(key: &str) -> u64 {
    let digits = key.len().checked_sub(16).and_then(|at| key.get(at..));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E: crate::Engine> Shared<E> {
    pub(crate) fn push(self: &Arc<Self>, entry: Entry) {
        let flight = self.queue().push(entry);
        self.launch(flight);
    }

    pub(crate) fn launch(self: &Arc<Self>, flights: impl IntoIterator<Item = Flight>) {
        for flight in flights {
            self.runtime.spawn(flight::fly(Arc::clone(self), flight));
        }
    }

    /// Gives back all that was charged, in the place that the call has in the background.
    pub(crate) fn give_back(
        self: &Arc<Self>,
        charge: &Charge,
        outcome: &Outcome,
        guard: Option<&Arc<Reservation>>,
    ) {
        if !outcome.is_admitted() {
            return;
        }
        self.counters.given_back.add(1);
        for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
            self.give_back_one(debit, &receipt, guard);
        }
    }

    /// Gives back a part of what a call has charged. The call keeps its place in the background for it, so that it finds
    /// room however many settlements are under way.
    pub(crate) fn give_back_one(
        self: &Arc<Self>,
        debit: &Debit,
        receipt: &Receipt,
        guard: Option<&Arc<Reservation>>,
    ) {
        let guard = guard.cloned().inspect(|guard| guard.leave());
        self.settle_within(debit, receipt, 0, || guard);
    }

    /// Changes the charge that wrote `receipt` to `spent`, in the background.
    pub(crate) fn settle(self: &Arc<Self>, debit: &Debit, receipt: &Receipt, spent: u64) {
        let guard = || self.background.settlement().map(Arc::new);
        self.settle_within(debit, receipt, spent, guard);
    }

    fn settle_within(
        self: &Arc<Self>,
        debit: &Debit,
        receipt: &Receipt,
        spent: u64,
        guard: impl FnOnce() -> Option<Arc<Reservation>>,
    ) {
        if spent == debit.cost || receipt.is_void() {
            return;
        }
        let settlement = Box::new((debit.clone(), *receipt, spent));
        let guard = guard();
        if guard.is_none() || self.runtime.handle().is_none() {
            return self.drop_settlement(&settlement);
        }
        let rows = vec![self.key(&debit.key, &debit.limit)];
        self.push(Entry::background(Job::Settle(settlement), rows, (self.until(), guard)));
    }

    /// When work in the background that begins now is given up.
    pub(crate) fn until(&self) -> u64 {
        self.runtime.clock.now().saturating_add(self.grace_micros())
    }

    /// How long work in the background is tried, in microseconds.
    pub(crate) fn grace_micros(&self) -> u64 {
        u64::try_from(self.grace.as_micros()).unwrap_or(u64::MAX)
    }

    /// Puts work of the background back, after a pause that is no longer than its time.
    pub(crate) fn later(self: &Arc<Self>, mut entry: Entry) {
        entry.failed += 1;
        let left = entry.until.saturating_sub(self.runtime.clock.now()).saturating_add(1);
        let pause = self.backoff.after(entry.failed).min(Duration::from_micros(left));
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            shared.runtime.timer(pause).await;
            shared.push(entry);
        });
    }
}

/// Hides keys and the secret.
impl<E> fmt::Debug for Shared<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swap").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
