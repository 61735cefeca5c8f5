//! Clocks: the time that stores and waits use.
//!
//! A [`ManualClock`] lets tests move the time by hand.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate::{Limit, Limiter, ManualClock, Memory};
//!
//! let clock = ManualClock::new();
//! let limiter = Limiter::new(Limit::per_minute(1)).store(Memory::builder().clock(&clock).build());
//! assert!(limiter.take("alice").now()?.is_admitted());
//! assert!(!limiter.take("alice").now()?.is_admitted());
//! clock.advance(Duration::from_secs(60));
//! assert!(limiter.take("alice").now()?.is_admitted());
//! # Ok::<(), sluicegate::store::StoreError>(())
//! ```

mod machine;
pub(crate) mod sleep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use self::machine::Machine;
use crate::limit::bounded;

/// The time, in microseconds since the Unix epoch.
///
/// The machine's clock is read once in the life of a process, and followed by the monotonic clock from then on. So it
/// does not step back, whatever happens to the system's time, except by some microseconds when the processor's
/// counter is corrected, which does not affect decisions.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    Machine(&'static Machine),
    Manual(ManualClock),
}

impl Clock {
    /// The machine's clock. The first in a process takes up to 200 ms to find out how fast the
    /// processor's counter runs.
    pub fn machine() -> Self {
        Self(Source::Machine(Machine::start()))
    }

    /// Microseconds since the Unix epoch; never more than a double holds exactly, which is year 2255.
    #[inline]
    pub fn now(&self) -> u64 {
        match &self.0 {
            Source::Machine(machine) => machine.now(),
            Source::Manual(clock) => bounded(clock.now()),
        }
    }

    /// Like [`now`](Self::now), for use under a lock: never earlier than a time that another thread was shown under
    /// the same lock.
    pub(crate) fn now_in_order(&self) -> u64 {
        match &self.0 {
            Source::Machine(machine) => machine.now_in_order(),
            Source::Manual(clock) => bounded(clock.now()),
        }
    }

    /// What a clock on the wall shows, which can be set at any moment. A manual clock is that clock too.
    #[cfg(feature = "file")]
    pub(crate) fn wall(&self) -> u64 {
        match &self.0 {
            Source::Machine(_) => bounded(machine::wall()),
            Source::Manual(clock) => bounded(clock.now()),
        }
    }

    /// The manual clock, if it is one: timers wait for it instead of sleeping.
    pub fn as_manual(&self) -> Option<&ManualClock> {
        match &self.0 {
            Source::Machine(_) => None,
            Source::Manual(clock) => Some(clock),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::machine()
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Self {
        Self(Source::Manual(clock))
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        clock.clone().into()
    }
}

/// A clock that only moves when a test moves it. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{ManualClock, Memory};
///
/// let clock = ManualClock::new();
/// let store = Memory::builder().clock(&clock).build();
/// clock.advance(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug, Default)]
struct ManualTime {
    now: AtomicU64,
    /// By the time that they wait for. Only those whose time has come are woken: a simulation moves the clock many thousand
    /// times while most of its tasks sleep.
    sleepers: Mutex<BTreeMap<u64, Vec<Waker>>>,
}

impl ManualClock {
    /// A clock that shows 2000-01-01 00:00:00 UTC.
    pub fn new() -> Self {
        Self::at(Duration::from_secs(946_684_800))
    }

    /// A clock that shows `since_epoch` after the Unix epoch.
    pub fn at(since_epoch: Duration) -> Self {
        let clock = Self::default();
        clock.set(since_epoch);
        clock
    }

    /// Microseconds since the Unix epoch.
    pub fn now(&self) -> u64 {
        self.0.now.load(Ordering::SeqCst)
    }

    /// Moves the clock forward by `time`, down to the microsecond.
    pub fn advance(&self, time: Duration) {
        self.0.now.fetch_add(time.as_micros() as u64, Ordering::SeqCst);
        self.wake();
    }

    /// Sets the clock to `since_epoch` after the Unix epoch, forwards or backwards.
    pub fn set(&self, since_epoch: Duration) {
        self.0.now.store(since_epoch.as_micros() as u64, Ordering::SeqCst);
        self.wake();
    }

    /// Ready once the clock shows `when`, in microseconds since the Unix epoch.
    pub fn poll_reached(&self, when: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut sleepers = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.now() >= when {
            return Poll::Ready(());
        }
        let wakers = sleepers.entry(when).or_default();
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// How many tasks wait for a time that the clock has not reached, including those that were dropped meanwhile.
    pub fn sleepers(&self) -> usize {
        let sleepers = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.values().map(Vec::len).sum()
    }

    fn wake(&self) {
        let mut sleepers = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let later = sleepers.split_off(&self.now().saturating_add(1));
        let woken = std::mem::replace(&mut *sleepers, later);
        drop(sleepers);
        woken.into_values().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
