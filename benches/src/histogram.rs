/// How often each time was measured, with a resolution of one thirty-second.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[u64; (64 - STEPS.ilog2() as usize + 1) * STEPS as usize]>,
    total: u64,
    max: u64,
}

/// Buckets for each doubling of the time.
const STEPS: u64 = 32;

impl Histogram {
    /// Adds one measurement.
    #[inline]
    pub fn record(&mut self, time: u64) {
        self.counts[bucket(time)] += 1;
        self.total += 1;
        self.max = self.max.max(time);
    }

    /// The time that all but one in `one_in` measurements stayed within.
    pub fn all_but_one_in(&self, one_in: u64) -> u64 {
        let mut left = self.total - self.total / one_in;
        let reached = self.counts.iter().position(|count| {
            left = left.saturating_sub(*count);
            left == 0
        });
        reached.map_or(self.max, |bucket| longest(bucket).min(self.max))
    }

    /// The longest time.
    pub fn max(&self) -> u64 {
        self.max
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Box::new([0; _]), total: 0, max: 0 }
    }
}

/// Times below `STEPS` have a bucket each; above, the leading bits choose.
fn bucket(time: u64) -> usize {
    let doublings = (time | (STEPS - 1)).ilog2() + 1 - STEPS.ilog2();
    (u64::from(doublings) * STEPS + (time >> doublings.saturating_sub(1)) % STEPS) as usize
}

/// The longest time that belongs to a bucket.
fn longest(bucket: usize) -> u64 {
    let (doublings, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match doublings {
        0 => step,
        _ => ((STEPS + step + 1) << (doublings - 1)).wrapping_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_at_most_a_thirty_second_shorter_than_its_longest() {
        for time in (0..10_000).chain([1 << 40, u64::MAX / 3, u64::MAX]) {
            let longest = longest(bucket(time));
            assert!(time <= longest && longest - time <= time / STEPS, "{time}: {longest}");
        }
    }

    #[test]
    fn one_in_a_hundred_is_longer() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|time| histogram.record(time));
        assert_eq!(histogram.all_but_one_in(2), 503);
        assert_eq!(histogram.all_but_one_in(100), 991);
        assert_eq!(histogram.max(), 1_000);
    }
}
