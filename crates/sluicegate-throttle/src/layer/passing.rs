use std::cell::Cell;
use std::sync::Arc;

use super::shared::Shared;

thread_local! {
    /// The address of the throttle whose requests are polled at this moment; zero for none.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// While this value exists, everything that runs in this thread belongs to a request that a throttle has started.
///
/// A request that meets a second layer of the same throttle further in would wait for the place that it holds itself. It
/// is counted once, by the outer layer.
#[derive(Debug)]
pub(super) struct Passing {
    before: usize,
}

impl Passing {
    #[inline]
    pub(super) fn through(throttle: &Arc<Shared>) -> Self {
        Self { before: INSIDE.replace(address(throttle)) }
    }

    /// Whether a request of this throttle is being polled.
    #[inline]
    pub(super) fn is_inside(throttle: &Arc<Shared>) -> bool {
        INSIDE.get() == address(throttle)
    }
}

/// Runs when a handler panics, too, so that the next request of this thread does not count as inside.
impl Drop for Passing {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

fn address(throttle: &Arc<Shared>) -> usize {
    Arc::as_ptr(throttle).addr()
}
