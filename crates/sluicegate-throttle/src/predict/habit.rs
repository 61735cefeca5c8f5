/// The sums follow this many requests.
const REQUESTS: f64 = 32.0;

/// Differences of less than a quarter count as chance.
const CHANCE: f64 = 1.25;

/// How the costs of a flow's requests compare with the costs expected for their routes. Both are estimates, so they are
/// doubles.
///
/// A client can choose the expensive requests of a route whose mean is low. Because of this factor, they are predicted
/// as expensive from the second one on, while cheap requests of other clients stay cheap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habit {
    actual: f64,
    expected: f64,
}

impl Habit {
    pub(super) fn learn(&mut self, expected: u64, actual: u64) {
        let follow = |sum: &mut f64, new: u64| *sum += new as f64 - *sum / REQUESTS;
        follow(&mut self.actual, actual);
        follow(&mut self.expected, expected);
    }

    /// The factor for expected costs.
    pub(super) fn factor(&self) -> f64 {
        if self.expected == 0.0 {
            return 1.0;
        }
        let factor = self.actual / self.expected;
        if (1.0 / CHANCE..=CHANCE).contains(&factor) { 1.0 } else { factor }
    }
}
