//! How soon a lost connection is made anew.

use std::time::Duration;

use crate::backoff::Backoff;

/// A connection that stood for as long as this, in microseconds, and on which the server answered, was a good
/// one.
const STEADY: u64 = 1_000_000;

/// How often the first pause is doubled, at most, where the server answers and then hangs up.
const PATIENCE: u32 = 4;

/// Connections in a row that were of no use: pauses grow with them, whether they could not be made, or were made
/// and brought nothing but errors. To make one is no sign of health.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pace {
    in_vain: u32,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stood {
    /// For so long, in microseconds.
    pub(super) time: u64,
    /// Whether the server answered on it, in time.
    pub(super) answered: bool,
}

impl Pace {
    /// How long to wait before a lost connection is made anew: the first time not at all, since its name may
    /// lead to another server by now.
    pub(super) fn lost(&mut self, stood: Stood, backoff: Backoff) -> Duration {
        if stood.answered && stood.time >= STEADY {
            self.in_vain = 0;
        }
        let before = self.in_vain;
        self.in_vain = before.saturating_add(1);
        match before {
            0 => Duration::ZERO,
            _ if stood.answered => backoff.after(before.min(PATIENCE)),
            _ => backoff.after(before),
        }
    }

    /// How long to wait after an attempt that failed.
    pub(super) fn failed(&mut self, backoff: Backoff) -> Duration {
        self.in_vain = self.in_vain.saturating_add(1);
        backoff.after(self.in_vain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(20), longest: Duration::from_secs(2) };

    const USELESS: Stood = Stood { time: 1_000, answered: false };

    #[test]
    fn connections_that_bring_only_errors_are_made_less_and_less_often() {
        let mut pace = Pace::default();
        assert_eq!(
            pace.lost(USELESS, BACKOFF),
            Duration::ZERO,
            "a promoted replica is found at once"
        );
        let time: Duration = (0..15).map(|_| pace.lost(USELESS, BACKOFF)).sum();
        assert!(time > Duration::from_secs(8), "15 connections within {time:?}");
        assert!(pace.lost(USELESS, BACKOFF) >= Duration::from_secs(1));
    }

    #[test]
    fn a_server_that_hangs_up_after_each_answer_is_not_called_more_than_about_ten_times_a_second() {
        let mut pace = Pace::default();
        let stood = Stood { time: 1_000, answered: true };
        let pauses: Vec<_> = (0..100).map(|_| pace.lost(stood, BACKOFF)).collect();
        assert!(pauses.iter().sum::<Duration>() > Duration::from_secs(8));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_millis(160)));
    }

    #[test]
    fn after_a_connection_that_stood_the_next_is_made_at_once() {
        let mut pace = Pace::default();
        for _ in 0..20 {
            pace.failed(BACKOFF);
        }
        let stood = Stood { time: STEADY, answered: true };
        assert_eq!(pace.lost(stood, BACKOFF), Duration::ZERO);
        assert!(pace.failed(BACKOFF) <= Duration::from_millis(40));
    }

    /// A server that accepts, greets and never answers.
    #[test]
    fn a_connection_that_stood_without_an_answer_was_of_no_use() {
        let mut pace = Pace::default();
        let stood = Stood { time: 10 * STEADY, answered: false };
        pace.lost(stood, BACKOFF);
        assert!(pace.lost(stood, BACKOFF) > Duration::ZERO);
    }
}
