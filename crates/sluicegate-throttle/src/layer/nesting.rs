use std::cell::Cell;
use std::sync::Arc;

use sluicegate_core::key::View;

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
pub(super) struct InsideGuard {
    before: usize,
}

impl InsideGuard {
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
impl Drop for InsideGuard {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

/// How many throttles a request remembers.
const MOST: usize = 4;

/// Which throttles have started a request; in its extensions. It goes with the request to other tasks, behind a `Buffer`
/// or a `spawn`, which [`InsideGuard`](super::nesting::InsideGuard) does not see.
///
/// To insert it takes 40 ns, so it is only in requests that may need it. Before any request of a route has ended, it is
/// in all of them: if one meets a second layer of its throttle, it is in every request of the throttle from then on. A
/// request that takes the last place has it too, so that no throttle is ever full of requests that wait for themselves.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StartMark {
    /// Their addresses, the latest first; zero for none.
    throttles: [usize; MOST],
}

impl StartMark {
    /// With one more throttle. The first of more than [`MOST`] is forgotten.
    pub(super) fn and_by(mut self, throttle: &Arc<Shared>) -> Self {
        // The innermost throttles are those that are met again most likely.
        self.throttles.rotate_right(1);
        self.throttles[0] = address(throttle);
        self
    }

    /// Whether this throttle has started the request of `view`.
    #[inline]
    pub(super) fn is_in(view: &impl View, throttle: &Arc<Shared>) -> bool {
        let has = |started: &Self| started.throttles.contains(&address(throttle));
        let is_in = view.extension(has).unwrap_or(false);
        if is_in {
            throttle.note_nested();
        }
        is_in
    }
}

fn address(throttle: &Arc<Shared>) -> usize {
    Arc::as_ptr(throttle).addr()
}
