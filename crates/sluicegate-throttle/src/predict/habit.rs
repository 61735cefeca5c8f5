/// The sums follow this many requests.
const REQUESTS: f64 = 32.0;

/// Differences within a quarter are taken for chance.
const CHANCE: f64 = 1.25;

/// What the requests of a flow cost beside what was expected of them by their route. Estimates, so they are doubles.
///
/// A client can choose the dear requests of a route whose mean is low. With this, they are dear from the second on,
/// and the cheap ones of others stay cheap.
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

    /// What to multiply expected costs by.
    pub(super) fn factor(&self) -> f64 {
        if self.expected == 0.0 {
            return 1.0;
        }
        let factor = self.actual / self.expected;
        if (1.0 / CHANCE..=CHANCE).contains(&factor) { 1.0 } else { factor }
    }
}
