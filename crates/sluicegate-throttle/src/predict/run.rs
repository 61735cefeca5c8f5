/// A run of fewer samples than this says nothing.
const FEWEST: u32 = 8;

/// A run that is less probable than this is a step change: one in ten million requests of a route is taken for one.
const CHANCE: f64 = 1e-6;

/// Finds step changes: runs of samples that are all more than twice the usual cost, or all less than half of it.
///
/// Where one request of twenty costs a hundred times as much as the others, a mean is no usual cost: nearly all samples
/// are far below it. The usual cost is the median here, and a run has to be improbable for how often such samples came
/// before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Runs {
    /// A frugal median: each sample moves it by a small part, up or down.
    usual: f64,
    /// The shares of samples far below and far above it.
    shares: [f64; 2],
    len: u32,
    is_above: bool,
    /// The sum of the run's samples.
    sum: f64,
    /// How probable the run is.
    chance: f64,
    /// How probable each sample of it is: the share when it began.
    share: f64,
}

/// What a sample did to a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Run {
    None,
    Began,
    GoesOn,
    /// It is a step change.
    Step(Step),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) mean: f64,
    /// How many samples the run has.
    pub(super) samples: u32,
}

impl Runs {
    pub(super) fn new(cost: f64) -> Self {
        Self { usual: cost, ..Self::default() }
    }

    /// The next sample. The shares follow by this part of each difference.
    #[inline]
    pub(super) fn learn(&mut self, cost: f64, part: f64) -> Run {
        let is_below = cost < self.usual / 2.0;
        let is_above = cost > 2.0 * self.usual;
        // By a fixed factor, whatever the distance, so that one outlier moves it no further than any other sample.
        // Frugal streaming, as for the high quantile.
        if cost != self.usual {
            self.usual *= if cost > self.usual { 1.0 + 1.0 / 16.0 } else { 1.0 - 1.0 / 16.0 };
        }
        let [below, above] = self.shares;
        let follow = |share: f64, is: bool| share + (f64::from(u8::from(is)) - share) * part;
        self.shares = [follow(below, is_below), follow(above, is_above)];
        if !is_above && !is_below {
            self.len = 0;
            return Run::None;
        }
        // A change of sides ends a run: costs that go up and down are no step.
        let begins = self.len == 0 || self.is_above != is_above;
        if begins {
            (self.len, self.sum, self.chance) = (0, 0.0, 1.0);
            self.is_above = is_above;
            self.share = if is_above { above } else { below };
        }
        self.len = self.len.saturating_add(1);
        self.sum += cost;
        // By the share when the run began: its own samples raise the share, and would make a step look usual.
        self.chance *= self.share;
        if self.len >= FEWEST && self.chance < CHANCE {
            let step = Step { mean: self.sum / f64::from(self.len), samples: self.len };
            // Everything that was usual before says nothing about the time after the step.
            *self = Self::new(step.mean);
            return Run::Step(step);
        }
        if begins { Run::Began } else { Run::GoesOn }
    }
}
