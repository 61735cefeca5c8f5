use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cost that a handler reports while it streams its answer, for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
///
/// Leave a clone in the response's extensions, and add to it while the body is made. The request is
/// settled once, when the body has ended, failed, or been dropped because the client has gone: by what
/// was reported until then. [`Reply::cost`](crate::adapter::Reply::cost) is the total. Clones count together.
///
/// ```
/// use sluicegate::cost::RunningCost;
///
/// // What is spent before the first byte is sent is part of the cost.
/// let cost = RunningCost::of(120);
/// let reported = cost.clone();
/// // response.extensions_mut().insert(cost);
/// // … and for each part of the body:
/// reported.add(3);
/// assert_eq!(reported.total(), 123);
/// # drop(cost);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunningCost(Arc<AtomicU64>);

impl RunningCost {
    /// A cost of zero so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cost that begins with `spent`.
    pub fn of(spent: u64) -> Self {
        Self(Arc::new(AtomicU64::new(spent)))
    }

    /// Adds `cost`; the total stays at most `u64::MAX`.
    pub fn add(&self, cost: u64) {
        let add = |total: u64| Some(total.saturating_add(cost));
        // Never fails, because there always is a sum.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Sets the cost so far to `total`, for handlers that count by themselves.
    pub fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// The cost so far.
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
