use super::habit::Credibility;
use super::run::{Run, Runs, Step};

/// The mean follows this many samples where costs are alike.
const FEW: f64 = 16.0;

/// The mean follows this many samples where costs differ. With one request of twenty a hundred times as dear as the
/// others, the mean of the last sixteen is between a sixth of the true one and six times it.
const MANY: f64 = 512.0;

/// Costs differ if their variance is more than this part of the square of the mean.
const ALIKE: f64 = 0.25;

/// The variance, and how often samples are far from what is usual, follow this many samples.
const SPREAD: f64 = 256.0;

/// What is left of the greatest deviation after another sample. A deviation of its size is expected again for some
/// thousand samples.
const PEAK: f64 = 1.0 - 1.0 / 4_096.0;

/// A sample counts as at most this many times what was expected, so that one outlier does not lock the queue. The second
/// one of its size counts in full.
const OUTLIER: f64 = 64.0;

/// What predictions were too low by, in sum, is added to this many of the next ones.
const OWED: f64 = 1_024.0;

/// The share of requests that cost at most the high quantile.
const HIGH: f64 = 0.95;

/// The expected cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The mean. Use it wherever costs are added up: the sum of the means of many requests follows the sum of their costs.
    pub mean: u64,
    /// About 95 of 100 such requests cost at most this. Use it for deadlines, never in a sum.
    pub high: u64,
}

/// What requests of one kind cost: a mean, whose sum over requests follows the sum of their costs, and a high quantile.
/// Both are estimates, so they are doubles.
///
/// A mean that moves by a fixed part of each difference is unbiased: the sum of all differences is what the mean has moved
/// by, times a constant. So nothing is left out of it. A sample that is greater than any before is spread over the next
/// ones, and the part of the movement changes only where costs begin or cease to differ, and with a step change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    mean: f64,
    /// The excess of samples that were greater than any before, a sixteenth of it. It fades within some tens of samples.
    surprise: f64,
    /// What requests have cost more than was predicted, in sum. If flows differ, those that are predicted are not those
    /// that the mean was made of.
    owed: f64,
    /// Samples since the last step change, up to [`MANY`].
    samples: f64,
    /// A deviation counts once another of its size has been seen.
    variance: f64,
    /// The greatest deviation of the last samples, squared.
    peak: f64,
    /// A frugal quantile: it moves up a little for each sample above it, and down a little less for each below.
    high: f64,
    runs: Runs,
    /// The variance and what was owed when the present run began: samples after a step change say nothing about them.
    before: (f64, f64),
    pub(super) credibility: Credibility,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) cost: f64,
    /// The cost without a bound.
    pub(super) actual: f64,
    /// How many times the mean the requests of its flow are expected to cost; `None` if its flow is not known.
    pub(super) factor: Option<f64>,
}

impl Estimate {
    pub(super) fn new(cost: f64) -> Self {
        let runs = Runs::new(cost);
        Self { mean: cost, high: cost, samples: 1.0, runs, ..Self::default() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.samples == 0.0
    }

    /// What requests of a flow are compared with.
    pub(super) const fn mean(&self) -> f64 {
        self.mean + self.surprise
    }

    /// The mean of the next requests, if all flows were alike.
    #[inline]
    pub(super) fn expected(&self) -> f64 {
        self.mean() + self.owed / OWED
    }

    /// The same of a flow that is expected to cost `factor` times the mean.
    pub(super) fn prediction(&self, factor: f64) -> Prediction {
        let mean = self.expected();
        Prediction { mean: rounded(factor * mean), high: rounded(factor * self.high.max(mean)) }
    }

    /// What a cost counts as where `expected` was.
    #[inline]
    pub(super) fn bounded(&self, expected: f64, cost: f64) -> f64 {
        let most = OUTLIER * expected;
        if cost <= most { cost } else { cost.min(most.max(self.mean + 2.0 * self.peak.sqrt())) }
    }

    /// Learns from a sample, and tells of a step change.
    pub(super) fn learn(&mut self, sample: Sample) -> Option<Step> {
        let Sample { cost, actual, factor } = sample;
        if self.is_empty() {
            *self = Self { credibility: self.credibility, ..Self::new(cost) };
            return None;
        }
        // At first the plain mean of all samples, where each counts the same. Only from then on does it forget.
        self.samples = (self.samples + 1.0).min(MANY);
        let spread = part(self.samples, SPREAD);
        match self.runs.learn(cost, spread) {
            Run::Step(step) => {
                self.begin_again(step);
                return Some(step);
            }
            Run::Began => self.before = (self.variance, self.owed),
            Run::None | Run::GoesOn => {}
        }
        if let Some(factor) = factor {
            // One request of a thousand can cost more than all the others together.
            // Bounded both ways, or a time of wrong predictions would be followed by one as long that is wrong the other way.
            let most = (OWED / 2.0 * self.mean()).max(4.0 * self.peak.sqrt());
            self.owed = (self.owed + cost - factor * self.expected()).clamp(-most, most);
        }
        let difference = cost - self.mean;
        let square = (actual - self.mean) * (actual - self.mean);
        // What is beyond any earlier deviation goes into `surprise` instead, which fades: one outlier must not lock the queue,
        // and leaving it out would bias the sum.
        let known = if square > self.peak { difference.min(self.peak.sqrt()) } else { difference };
        self.variance += (square.min(self.peak) - self.variance) * spread;
        // After the variance, so that a deviation counts in full only from its second time on.
        self.peak = (self.peak * PEAK).max(square);
        // Where costs are alike a short memory follows changes; where they differ only a long one has a steady mean.
        let differ = self.variance > ALIKE * self.mean * self.mean;
        let part = if differ { part(self.samples, MANY) } else { part(self.samples, FEW) };
        self.mean += known * part;
        self.surprise += (difference - known - self.surprise) * (1.0 / FEW);
        // A frugal quantile (Ma, Muthukrishnan and Sandler, 2013): up by 0.95 of a step for a sample above, down by
        // 0.05 of one for a sample below, which balances where one sample of twenty is above. It needs one number and
        // no samples.
        let step = self.high * (1.0 / FEW);
        self.high += if cost > self.high { step * HIGH } else { -step * (1.0 - HIGH) };
        None
    }

    fn begin_again(&mut self, step: Step) {
        let (variance, owed) = self.before;
        // As much as before, relative to the mean.
        let times = step.mean / self.mean;
        *self = Self {
            samples: f64::from(step.samples).min(MANY),
            variance: variance * times * times,
            owed: owed * times,
            peak: self.peak,
            runs: self.runs,
            credibility: self.credibility,
            ..Self::new(step.mean)
        };
    }
}

/// The part of a difference by which an average moves that follows `most` of `samples` samples. `most` is a constant, so
/// nearly always nothing is divided.
#[inline(always)]
fn part(samples: f64, most: f64) -> f64 {
    if samples < most { 1.0 / samples } else { 1.0 / most }
}

/// The nearest whole cost, at least 1. Costs are positive, and `round` is a call on processors without an instruction
/// for it.
#[inline]
pub(super) fn rounded(cost: f64) -> u64 {
    ((cost + 0.5) as u64).max(1)
}
