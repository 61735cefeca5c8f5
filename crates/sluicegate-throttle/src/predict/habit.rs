use super::credibility::Credibility;

/// The sums follow this many requests.
const REQUESTS: f64 = 32.0;

/// How the costs of a flow's requests compare with the costs expected for their routes. Both are estimates, so they are
/// doubles.
///
/// A client can choose the expensive requests of a route whose mean is low. Because of this, they are predicted as
/// expensive after a few of them, while cheap requests of other clients stay cheap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habit {
    actual: f64,
    expected: f64,
    requests: f64,
}

impl Habit {
    pub(super) fn learn(&mut self, expected: f64, actual: f64) {
        let follow = |sum: &mut f64, new: f64| *sum += new - *sum / REQUESTS;
        follow(&mut self.actual, actual);
        follow(&mut self.expected, expected);
        follow(&mut self.requests, 1.0);
    }

    /// By how much its requests cost more than expected, in parts of that, and how many requests tell so.
    #[inline]
    pub(super) fn deviation(&self) -> (f64, f64) {
        if self.requests > 0.0 {
            (self.actual / self.expected - 1.0, self.requests)
        } else {
            (0.0, 0.0)
        }
    }

    /// How many times the cost expected for a route its requests are expected to cost.
    #[inline]
    pub(super) fn factor(&self, credibility: &Credibility) -> f64 {
        1.0 + credibility.deviation(self.actual, self.expected, self.requests)
    }
}
