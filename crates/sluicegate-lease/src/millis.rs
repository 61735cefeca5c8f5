use std::time::Duration;

/// Whole milliseconds, in which the pool and its clients count.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
