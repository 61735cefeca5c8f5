//! Conditions on the load: for limits that are more generous while there is capacity.

#[cfg(feature = "cpu")]
mod cpu;
mod in_flight;

use std::fmt;

#[cfg(feature = "cpu")]
pub use self::cpu::{Cpu, CpuError};
pub use self::in_flight::{InFlight, InFlightGuard};

use crate::condition::{ChosenBy, Condition};
use crate::key::{Missing, View};

/// Holds while the application says that it has capacity.
///
/// The closure is called on every request to which its rule may apply, so the answer should be at hand, for example in
/// an atomic that a measuring thread writes.
///
/// The answer may change at any time. So with two rules, one for when such a condition holds and one for when it does
/// [`Not`](crate::condition::Not), a request can be charged to both, or to none. Ask once, and choose between the
/// limits of one rule with [`when`](crate::when).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use sluicegate::{Ip, Limit, when};
/// use sluicegate::condition::HasCapacity;
///
/// let queued = Arc::new(AtomicUsize::new(0));
/// let jobs = Arc::clone(&queued);
/// let room = HasCapacity::from_fn(move || jobs.load(Ordering::Relaxed) < 1_000);
///
/// // Up to ten times as much while few jobs are queued: one budget, whichever of the limits holds.
/// let elastic = when(room.clone(), Limit::per_minute(1_000).named("api"))
///     .otherwise(Limit::per_minute(100).named("api"))
///     .by(Ip::peer());
/// assert!(room.has_capacity());
/// queued.store(1_000, Ordering::Relaxed);
/// assert!(!room.has_capacity());
/// # let _ = elastic;
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct HasCapacity<F>(F);

impl<F: Fn() -> bool> HasCapacity<F> {
    /// Holds while `has_capacity` returns true.
    pub fn from_fn(has_capacity: F) -> Self {
        Self(has_capacity)
    }

    /// Whether there is capacity now, for callers that have no request.
    pub fn has_capacity(&self) -> bool {
        (self.0)()
    }
}

impl<V: View, F: Fn() -> bool> Condition<V> for HasCapacity<F> {
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(self.has_capacity())
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl<F> fmt::Debug for HasCapacity<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HasCapacity")
    }
}
