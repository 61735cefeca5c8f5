use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A cost that a handler reports while it streams its answer, for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
///
/// Leave a clone in the response's extensions, and add to it while the body is made. The request is
/// settled once, by what was reported until then: when the cost is [final](Self::finish), at the latest when the body has
/// ended, failed, or been dropped because the client has gone. [`Reply::cost`](crate::adapter::Reply::cost) is the total.
/// Clones count together.
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
#[derive(Clone)]
pub struct RunningCost(Arc<ReportedCost>);

struct ReportedCost<P: ?Sized = dyn Any + Send + Sync> {
    total: AtomicU64,
    is_final: AtomicBool,
    parts: P,
}

impl RunningCost {
    /// A cost of zero so far.
    pub fn new() -> Self {
        Self::of(0)
    }

    /// A cost that begins with `spent`.
    pub fn of(spent: u64) -> Self {
        let reported = ReportedCost { total: spent.into(), is_final: false.into(), parts: () };
        Self(Arc::new(reported))
    }

    /// A cost of zero so far that is made of `parts`, such as tokens of several kinds. A
    /// [`Settlement`](crate::cost::Settlement) that knows their type finds them again.
    pub fn with_parts(parts: impl Any + Send + Sync) -> Self {
        Self(Arc::new(ReportedCost { total: 0.into(), is_final: false.into(), parts }))
    }

    /// The parts of the cost, if their type is `P`.
    pub fn parts<P: Any>(&self) -> Option<&P> {
        self.0.parts.downcast_ref()
    }

    /// Adds `cost`; the total stays at most `u64::MAX`.
    pub fn add(&self, cost: u64) {
        let add = |total: u64| Some(total.saturating_add(cost));
        // Never fails, because there always is a sum.
        let _ = self.0.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Sets the cost so far to `total`, for handlers that count by themselves.
    pub fn set(&self, total: u64) {
        self.0.total.store(total, Ordering::Relaxed);
    }

    /// The cost so far.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// The cost so far; `None` if it is made of parts, of which only a [`Settlement`](crate::cost::Settlement) knows what
    /// they cost together.
    pub fn amount(&self) -> Option<u64> {
        self.0.parts.is::<()>().then(|| self.total())
    }

    /// What was reported is the whole cost. The request is settled with the next part of the body, and not only with its
    /// end, which may come late or never.
    pub fn finish(&self) {
        // `Release`: a thread that sees the flag also sees every cost that was reported before it.
        self.0.is_final.store(true, Ordering::Release);
    }

    /// Whether [`finish`](Self::finish) was called.
    pub fn is_final(&self) -> bool {
        self.0.is_final.load(Ordering::Acquire)
    }
}

impl Default for RunningCost {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RunningCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningCost").field(&self.total()).finish()
    }
}
