use super::Prediction;

/// The mean follows this many samples.
const SAMPLES: f64 = 16.0;

/// This many samples in a row that are all more than twice the mean, or all less than half of it, are a step change.
/// The mean then starts again with them. Without this, a smoothed mean would still contain 1.6 % of the old mean in the
/// 64th request after the step. If costs fell to a tenth, that would be 15 % of the new mean.
const STEP: u8 = 8;

/// The share of requests that cost at most the high quantile.
const HIGH: f64 = 0.95;

/// A smoothed mean and a high quantile in a few bytes. Both are estimates, so they are doubles.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    mean: f64,
    /// A frugal quantile: it moves up a little for each sample above it, and down a little less for each below.
    high: f64,
    /// Samples in the mean, up to [`SAMPLES`].
    samples: f64,
    /// Samples in a row that were far above (or below) the mean.
    far: u8,
    is_far_above: bool,
    /// The sum of those.
    far_sum: f64,
}

impl Estimate {
    pub(super) fn prediction(&self) -> Option<Prediction> {
        let high = rounded(self.high.max(self.mean));
        self.mean().map(|mean| Prediction { mean, high })
    }

    #[inline]
    pub(super) fn mean(&self) -> Option<u64> {
        (self.samples > 0.0).then(|| rounded(self.mean))
    }

    pub(super) fn learn(&mut self, cost: u64) {
        let cost = cost as f64;
        if self.samples == 0.0 {
            *self = Self { mean: cost, high: cost, samples: 1.0, ..Self::default() };
            return;
        }
        if self.is_step(cost) {
            self.mean = self.far_sum / f64::from(STEP);
            self.samples = f64::from(STEP);
            self.high = self.mean;
            self.far = 0;
            return;
        }
        self.samples = (self.samples + 1.0).min(SAMPLES);
        self.mean += (cost - self.mean) / self.samples;
        let step = self.high / SAMPLES;
        self.high += if cost > self.high { step * HIGH } else { -step * (1.0 - HIGH) };
    }

    fn is_step(&mut self, cost: f64) -> bool {
        let is_above = cost > 2.0 * self.mean;
        if !is_above && cost >= self.mean / 2.0 {
            self.far = 0;
            return false;
        }
        if self.far == 0 || self.is_far_above != is_above {
            (self.far, self.far_sum, self.is_far_above) = (0, 0.0, is_above);
        }
        self.far += 1;
        self.far_sum += cost;
        self.far == STEP
    }
}

/// The nearest whole cost, at least 1. Costs are positive, and `round` is a call on processors without an instruction
/// for it.
#[inline]
pub(super) fn rounded(cost: f64) -> u64 {
    ((cost + 0.5) as u64).max(1)
}
