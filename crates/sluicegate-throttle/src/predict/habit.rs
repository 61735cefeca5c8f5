use super::estimate::rounded;

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

    /// What a request is expected to cost whose route is expected to cost this.
    #[inline]
    pub(super) fn applied_to(&self, cost: u64) -> u64 {
        let is_usual =
            self.actual <= self.expected * CHANCE && self.expected <= self.actual * CHANCE;
        if is_usual { cost } else { rounded(cost as f64 * self.actual / self.expected) }
    }
}
