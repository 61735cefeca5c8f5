//! The seam to the runtime: the one place that knows tokio's timer.

use std::time::Duration;

use sluicegate_core::clock::Clock;

/// A wait by the store's clock.
pub(crate) type Sleep = sluicegate_core::adapter::Sleep<tokio::time::Sleep>;

pub(crate) fn sleep(clock: &Clock, time: Duration) -> Sleep {
    Sleep::new(clock, time, tokio::time::sleep)
}
