//! Counts over time, in bounded memory.

use std::time::Duration;

/// Most marks of a series.
const MOST: usize = 60;

/// How many events there were, in parts of equal length of the time from the first to the last.
#[derive(Debug, Clone)]
pub(super) struct Series {
    first: u64,
    /// The length of a part in microseconds.
    width: u64,
    counts: Vec<u64>,
}

impl Series {
    /// A series that begins at a time in microseconds.
    pub(super) fn from(first: u64) -> Self {
        Self { first, width: 1_000_000, counts: Vec::new() }
    }

    pub(super) fn add(&mut self, at: u64) {
        *self.part(at) += 1;
    }

    /// The part of this time, which may be a new one.
    fn part(&mut self, at: u64) -> &mut u64 {
        let since = at.saturating_sub(self.first);
        while since / self.width >= MOST as u64 {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width = self.width.saturating_mul(2);
        }
        let part = (since / self.width) as usize;
        if self.counts.len() <= part {
            self.counts.resize(part + 1, 0);
        }
        &mut self.counts[part]
    }

    /// The same until `last`.
    pub(super) fn until(mut self, last: u64) -> Self {
        self.part(last);
        self
    }

    pub(super) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(super) fn width(&self) -> Duration {
        Duration::from_micros(self.width)
    }

    /// A mark for each part, as high as its count.
    pub(super) fn sparkline(&self) -> String {
        const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.counts.iter().copied().max().unwrap_or_default().max(1);
        let mark = |count: &u64| match count {
            0 => ' ',
            // The highest is 8 of 8, and nothing that was counted is less than 1.
            count => MARKS[(count * 8).div_ceil(most) as usize - 1],
        };
        self.counts.iter().map(mark).collect()
    }
}

/// Durations, each known to an eighth.
#[derive(Debug, Clone)]
pub(super) struct Durations {
    counts: Vec<u64>,
    count: u64,
    longest: Duration,
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: vec![0; 8 * 64], count: 0, longest: Duration::ZERO }
    }
}

impl Durations {
    pub(super) fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(8);
        let power = micros.ilog2();
        let eighth = (micros >> (power - 3)) & 7;
        self.counts[(power * 8) as usize + eighth as usize] += 1;
        self.count += 1;
        self.longest = self.longest.max(time);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn longest(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.longest)
    }

    /// As long as `share` of them at most, or up to an eighth more.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let due = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= due.max(1)
        });
        let Some(at) = at else { return Duration::ZERO };
        let (power, eighth) = (at / 8, (at % 8) as u128);
        let end = ((9 + eighth) << power) / 8;
        Duration::from_micros(u64::try_from(end).unwrap_or(u64::MAX)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_of_any_length_has_at_most_sixty_parts_and_loses_none() {
        let mut series = Series::from(0);
        for second in 0..100_000 {
            series.add(second * 1_000_000);
        }
        let series = series.until(200_000 * 1_000_000);
        assert!(series.counts().len() <= MOST && series.counts().len() > MOST / 2);
        assert_eq!(series.counts().iter().sum::<u64>(), 100_000);
        let line = series.sparkline();
        assert!(line.starts_with('█') && line.ends_with(' '), "{line:?}");
        Series::from(u64::MAX).add(u64::MAX);
        let mut long = Series::from(0);
        long.add(u64::MAX);
        assert_eq!(long.counts().iter().sum::<u64>(), 1);
    }

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut durations = Durations::default();
        for second in 1..=1_000 {
            durations.add(Duration::from_secs(second));
        }
        for (share, expected) in [(0.5, 500.0), (0.9, 900.0), (1.0, 1_000.0)] {
            let found = durations.quantile(share).as_secs_f64();
            assert!((expected..=expected * 1.126).contains(&found), "{share}: {found}");
        }
        durations.add(Duration::ZERO);
        durations.add(Duration::MAX);
        assert_eq!(durations.longest(), Some(Duration::MAX));
    }
}
