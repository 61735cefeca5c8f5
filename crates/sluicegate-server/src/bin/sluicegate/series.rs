//! Counts over time, in bounded memory.

use std::time::Duration;

/// Most parts of a series in a line of text.
const MOST: usize = 60;

/// Most parts of a series in a picture.
const MOST_FINE: usize = 240;

/// How many events there were, in parts of equal length of the time from the first to the last.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    first: u64,
    /// The length of a part in microseconds.
    width: u64,
    most: usize,
    counts: Vec<u64>,
}

impl Series {
    /// A series that begins at a time in microseconds.
    pub(crate) fn from(first: u64) -> Self {
        Self { first, width: 1_000_000, most: MOST, counts: Vec::new() }
    }

    /// A series for a picture.
    pub(crate) fn fine(first: u64) -> Self {
        Self { most: MOST_FINE, ..Self::from(first) }
    }

    pub(crate) fn add(&mut self, at: u64) {
        *self.part(at) += 1;
    }

    /// The part of this time, which may be a new one.
    fn part(&mut self, at: u64) -> &mut u64 {
        let since = at.saturating_sub(self.first);
        while since / self.width >= self.most as u64 {
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
    pub(crate) fn until(mut self, last: u64) -> Self {
        self.part(last);
        self
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn width(&self) -> Duration {
        Duration::from_micros(self.width)
    }

    /// A mark for each part, as high as its count.
    pub(crate) fn sparkline(&self) -> String {
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

/// Counts events by the minute. Times do not go back.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    minute: (u64, u64),
    highest: (u64, u64),
}

impl Peak {
    /// Something happened in this minute.
    pub(crate) fn add(&mut self, minute: u64) {
        if minute != self.minute.0 {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        if self.minute.1 > self.highest.1 {
            self.highest = self.minute;
        }
    }

    /// The first minute with the most events, and how many it has.
    pub(crate) const fn highest(&self) -> (u64, u64) {
        self.highest
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
}
