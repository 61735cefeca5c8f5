use std::time::Duration;

use tokio::time::Instant;

use crate::millis::millis;

/// Counts milliseconds from its start, by the runtime's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn millis(self, at: Instant) -> u64 {
        millis(at.saturating_duration_since(self.0))
    }

    /// `None` if that is too far away for the clock.
    pub(crate) fn instant(self, millis: u64) -> Option<Instant> {
        self.0.checked_add(Duration::from_millis(millis))
    }
}
