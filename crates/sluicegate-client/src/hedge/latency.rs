use hdrhistogram::Histogram;

use crate::table::{Row, Worth};

/// A window has this many responses at least, so that its percentile means something.
const LEAST: u64 = 100;

/// And at most this many.
const MOST: u64 = 1_000;

/// A window that is older ends when it has [`LEAST`], in microseconds.
const AGE: u64 = 60_000_000;

/// The longest time that is told apart from longer ones, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// How long responses take: the percentile of the last window, of a hundred to a thousand responses.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// Boxed, because it is as large as hundreds of counters. Its precision is a tenth.
    seen: Option<Box<Histogram<u16>>>,
    /// When the window began.
    began: u64,
    /// The percentile of the window before, in microseconds.
    late: Option<u64>,
    used: u64,
}

impl Latencies {
    /// After how many microseconds a response is late, once that is known.
    pub(super) fn late(&mut self, now: u64) -> Option<u64> {
        self.used = now;
        self.late
    }

    /// Notes that a response took so long.
    pub(super) fn note(&mut self, now: u64, micros: u64, percentile: f64) {
        if self.seen.is_none() {
            self.began = now;
            self.seen = Histogram::new_with_bounds(1, LONGEST, 1).ok().map(Box::new);
        }
        let Some(seen) = &mut self.seen else { return };
        seen.saturating_record(micros);
        let is_due = self.late.is_none() || now.saturating_sub(self.began) >= AGE;
        if seen.len() >= MOST || (seen.len() >= LEAST && is_due) {
            self.late = Some(seen.value_at_quantile(percentile));
            seen.reset();
            self.began = now;
        }
    }

    /// Notes that a response did not come in this time. Where that is not yet late, it says nothing.
    pub(super) fn note_missing(&mut self, now: u64, micros: u64, percentile: f64) {
        if self.late.is_some_and(|late| micros >= late) {
            self.note(now, micros, percentile);
        }
    }
}

/// What was not used for the longest time is forgotten first.
impl Row for Latencies {
    fn worth(&self, _: u64) -> Worth {
        Worth::Something(self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies of this many milliseconds each, in a row.
    fn noted(latencies: &mut Latencies, millis: impl Iterator<Item = u64>) {
        millis.for_each(|millis| latencies.note(0, millis * 1_000, 0.95));
    }

    #[test]
    fn nothing_is_late_before_a_hundred_responses() {
        let mut latencies = Latencies::default();
        noted(&mut latencies, 1..=99);
        assert_eq!(latencies.late(0), None);
        noted(&mut latencies, 100..=100);
        let late = latencies.late(0).unwrap();
        assert!((95_000..=105_000).contains(&late), "{late}");
    }

    #[test]
    fn the_percentile_follows_after_a_thousand_responses_or_a_minute() {
        let mut latencies = Latencies::default();
        noted(&mut latencies, (0..100).map(|_| 10));
        noted(&mut latencies, (0..999).map(|_| 100));
        assert!(latencies.late(0).unwrap() < 12_000);
        noted(&mut latencies, 100..=100);
        assert!(latencies.late(0).unwrap() >= 100_000);
        (0..100).for_each(|second| latencies.note(second * 1_000_000, 5_000, 0.95));
        assert!(latencies.late(0).unwrap() < 6_000);
    }

    #[test]
    fn a_caller_that_leaves_early_does_not_make_responses_look_fast() {
        let mut latencies = Latencies::default();
        noted(&mut latencies, (0..100).map(|_| 10));
        (0..10_000).for_each(|_| latencies.note_missing(0, 50, 0.95));
        assert!(latencies.late(0).unwrap() >= 10_000);
        // Those that left when the response was late have seen that it takes longer.
        (0..1_000).for_each(|_| latencies.note_missing(0, 500_000, 0.95));
        assert!(latencies.late(0).unwrap() >= 500_000);
    }

    #[test]
    fn any_time_can_be_noted() {
        let mut latencies = Latencies::default();
        for micros in [0, 1, LONGEST, u64::MAX] {
            (0..1_000).for_each(|_| latencies.note(u64::MAX, micros, 0.999));
        }
        assert!(latencies.late(u64::MAX).unwrap() >= LONGEST);
    }
}
