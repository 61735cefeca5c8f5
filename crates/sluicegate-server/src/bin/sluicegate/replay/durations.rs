//! Durations, in bounded memory.

use std::time::Duration;

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
