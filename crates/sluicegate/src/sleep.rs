//! The seam to the runtime: the one place that knows tokio's timer.

use std::time::Duration;

use sluicegate_core::adapter::Timer;

/// tokio's timer, for a [`Pending`](crate::adapter::Pending) admission.
#[derive(Debug, Clone, Copy)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    type Sleep = tokio::time::Sleep;

    fn sleep(time: Duration) -> Self::Sleep {
        tokio::time::sleep(time)
    }
}
