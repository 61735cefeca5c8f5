//! A histogram of the time that decisions took, in powers of two.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The end of the first bucket, in microseconds. Each next bucket ends at twice that.
const FIRST: u64 = 64;

/// Up to 64 µs, 128 µs, … 1 s, and longer.
const BUCKETS: usize = 16;

/// How long decisions took, from the call to the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatencyCounts {
    /// The sum of all times.
    pub sum: Duration,
    /// The longest time.
    pub longest: Duration,
    buckets: [u64; BUCKETS],
}

impl LatencyCounts {
    /// The end of each bucket and the number of decisions in it, from the fastest. The last bucket has no end.
    ///
    /// ```
    /// # let counts = sluicegate_redis::counts::LatencyCounts::default();
    /// for (up_to, count) in counts.buckets() {
    ///     match up_to {
    ///         Some(up_to) => println!("{count} within {up_to:?}"),
    ///         None => println!("{count} took longer"),
    ///     }
    /// }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let end = |i: usize| (i + 1 < BUCKETS).then(|| Duration::from_micros(FIRST << i));
        self.buckets.iter().enumerate().map(move |(i, count)| (end(i), *count))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Latency {
    sum: AtomicU64,
    longest: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Latency {
    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Ordering::Relaxed);
        if micros > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(micros, Ordering::Relaxed);
        }
        self.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> LatencyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LatencyCounts {
            sum: Duration::from_micros(read(&self.sum)),
            longest: Duration::from_micros(read(&self.longest)),
            buckets: self.buckets.each_ref().map(read),
        }
    }
}

fn bucket(micros: u64) -> usize {
    let doubled = micros.div_ceil(FIRST).max(1).next_power_of_two().ilog2();
    (doubled as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_took_no_longer_than_its_end() {
        for (micros, expected) in
            [(0, 0), (64, 0), (65, 1), (128, 1), (129, 2), (1 << 20, 14), ((1 << 20) + 1, 15)]
        {
            assert_eq!(bucket(micros), expected, "{micros}");
        }
        assert_eq!(bucket(u64::MAX / 2), BUCKETS - 1);
    }

    #[test]
    fn what_is_recorded_is_shown() {
        let latency = Latency::default();
        for micros in [10, 100, 5_000_000] {
            latency.record(Duration::from_micros(micros));
        }
        let counts = latency.read();
        assert_eq!(counts.sum, Duration::from_micros(5_000_110));
        assert_eq!(counts.longest, Duration::from_secs(5));
        let found: Vec<_> = counts.buckets().filter(|(_, count)| *count > 0).collect();
        let micros = |micros| Some(Duration::from_micros(micros));
        assert_eq!(found, [(micros(64), 1), (micros(128), 1), (None, 1)]);
    }
}
