//! At most one log line of a kind each second.

use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::clock::Clock;

/// Microseconds between two lines of one kind.
const INTERVAL: u64 = 1_000_000;

/// The kinds of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Connected,
    Lost,
    Unreachable,
    Opened,
    Closed,
    Dropped,
}

/// Allows one line of a kind each second, for all servers of a store together: neither a cluster whose nodes all fail,
/// nor a server that closes every connection, floods the log.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    clock: Clock,
    lines: [Line; 6],
}

#[derive(Debug, Default)]
struct Line {
    /// When the last line was logged; 0 if none was.
    logged: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimiter {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..Self::default() }
    }

    /// If a line may be logged now, returns how many were suppressed since the last one.
    pub(crate) fn allow(&self, event: Event) -> Option<u64> {
        let (line, now) = (&self.lines[event as usize], self.clock.now());
        let last = line.logged.load(Ordering::Relaxed);
        let is_time = last == 0 || now.abs_diff(last) >= INTERVAL;
        let turn =
            || line.logged.compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if is_time && turn().is_ok() {
            return Some(line.suppressed.swap(0, Ordering::Relaxed));
        }
        line.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluicegate_core::ManualClock;

    use super::*;

    #[test]
    fn a_line_of_a_kind_is_logged_once_a_second_with_the_number_suppressed() {
        let clock = ManualClock::new();
        let limiter = LogLimiter::new(&Clock::from(&clock));
        assert_eq!(limiter.allow(Event::Lost), Some(0));
        for _ in 0..400 {
            assert_eq!(limiter.allow(Event::Lost), None);
        }
        assert_eq!(limiter.allow(Event::Dropped), Some(0), "another kind");
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.allow(Event::Lost), Some(400));
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.allow(Event::Lost), Some(0));
    }
}
