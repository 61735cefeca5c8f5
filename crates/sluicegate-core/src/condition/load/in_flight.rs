use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::condition::{ChosenBy, Condition};
use crate::key::{Missing, View};

/// Holds while less than a bound is in flight: a count, and the bound.
///
/// It refuses nothing itself, and it counts what enters, not what is decided. Put `sluicegate`'s `InFlightLayer` or
/// `sluicegate-actix`'s `InFlightMiddleware` around the service, or call [`enter`](Self::enter) where work begins.
/// Clones share one count.
///
/// ```
/// use sluicegate::{Ip, Limit, when};
/// use sluicegate::condition::InFlight;
///
/// let load = InFlight::below(2);
/// // Up to ten times as much while little is under way: one budget, whichever of the limits holds.
/// let elastic = when(load.clone(), Limit::per_minute(1_000).named("api"))
///     .otherwise(Limit::per_minute(100).named("api"))
///     .by(Ip::peer());
///
/// let first = load.enter();
/// assert!(load.has_capacity());
/// let second = load.enter();
/// assert!(!load.has_capacity());
/// drop(first);
/// assert!(load.has_capacity());
/// # drop((second, elastic));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct InFlight {
    count: Arc<AtomicUsize>,
    below: usize,
}

impl InFlight {
    /// Holds while less than `bound` is in flight. The count begins with zero.
    ///
    /// Whether a request that is being decided counts itself depends on which is the outer layer, the count or the
    /// limit. If it is the count, it does, and so do refused requests for as long as it takes to refuse them.
    pub fn below(bound: usize) -> Self {
        Self { count: Arc::default(), below: bound }
    }

    /// The same counter with another bound, for limits that change in several steps.
    pub fn also_below(&self, bound: usize) -> Self {
        Self { count: Arc::clone(&self.count), below: bound }
    }

    /// Adds one to the count until the returned value is dropped.
    #[inline]
    pub fn enter(&self) -> InFlightGuard {
        self.count.fetch_add(1, Ordering::Relaxed);
        InFlightGuard { count: Arc::clone(&self.count) }
    }

    /// How much is in flight.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether less than the bound is under way, for callers that have no request.
    #[inline]
    pub fn has_capacity(&self) -> bool {
        self.count() < self.below
    }
}

impl<V: View> Condition<V> for InFlight {
    #[inline]
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(self.has_capacity())
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

/// What an [`InFlight`] counts, until it is dropped.
#[derive(Debug)]
#[must_use = "dropped at once, it counts nothing"]
pub struct InFlightGuard {
    count: Arc<AtomicUsize>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_below_the_bound_and_not_at_it() {
        let load = InFlight::below(2);
        let first = load.enter();
        assert!(load.has_capacity());
        let second = load.enter();
        assert!(!load.has_capacity());
        drop(first);
        assert!(load.has_capacity());
        drop(second);
        assert_eq!(load.count(), 0);
        assert!(!InFlight::below(0).has_capacity());
    }

    #[test]
    fn clones_and_other_bounds_count_together() {
        let few = InFlight::below(1);
        let many = few.also_below(3);
        let _guards = [few.clone().enter(), many.enter()];
        assert_eq!((few.count(), many.count()), (2, 2));
        assert!(!few.has_capacity() && many.has_capacity());
    }

    #[test]
    fn a_panic_in_the_work_is_counted_down_too() {
        let load = InFlight::below(1);
        let inside = load.clone();
        let work = std::thread::spawn(move || {
            let _guard = inside.enter();
            panic!("the work failed");
        });
        assert!(work.join().is_err());
        assert_eq!(load.count(), 0);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let load = InFlight::below(usize::MAX);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| drop(load.enter())));
                scope.spawn(|| (0..100).for_each(|_| std::mem::forget(load.enter())));
            }
        });
        assert_eq!(load.count(), 400);
    }
}
