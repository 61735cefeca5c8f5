//! Telling the operator, but not too often.

use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::clock::Clock;

/// Microseconds between two lines of one kind.
const QUIET: u64 = 1_000_000;

/// What the operator is told of, as lines in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    Connected,
    Lost,
    Unreachable,
    Opened,
    Closed,
    Dropped,
}

/// At most one line of a kind each second, over all servers of a store: a cluster whose nodes all fail, and a
/// server to which each connection is lost at once, must not become a flood of lines.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    clock: Clock,
    lines: [Line; 6],
}

#[derive(Debug, Default)]
struct Line {
    /// When the last one was told; 0 if none was.
    told: AtomicU64,
    left_out: AtomicU64,
}

impl Quiet {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..Self::default() }
    }

    /// Whether it is time to tell; and then how many were left out since the last.
    pub(crate) fn is_over(&self, about: About) -> Option<u64> {
        let (line, now) = (&self.lines[about as usize], self.clock.now());
        let told = line.told.load(Ordering::Relaxed);
        let is_time = told == 0 || now.abs_diff(told) >= QUIET;
        let turn =
            || line.told.compare_exchange(told, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if is_time && turn().is_ok() {
            return Some(line.left_out.swap(0, Ordering::Relaxed));
        }
        line.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluicegate_core::ManualClock;

    use super::*;

    #[test]
    fn a_line_of_a_kind_is_told_once_a_second_with_the_number_left_out() {
        let clock = ManualClock::new();
        let quiet = Quiet::new(&Clock::from(&clock));
        assert_eq!(quiet.is_over(About::Lost), Some(0));
        for _ in 0..400 {
            assert_eq!(quiet.is_over(About::Lost), None);
        }
        assert_eq!(quiet.is_over(About::Dropped), Some(0), "another kind");
        clock.advance(Duration::from_secs(1));
        assert_eq!(quiet.is_over(About::Lost), Some(400));
        clock.advance(Duration::from_secs(1));
        assert_eq!(quiet.is_over(About::Lost), Some(0));
    }
}
