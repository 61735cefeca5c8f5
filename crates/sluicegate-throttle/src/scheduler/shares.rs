/// Weighted shares of the classes, by stride scheduling: the class with the lowest pass is next, and what it starts
/// moves its pass forward by cost over weight.
#[derive(Debug)]
pub(super) struct Shares {
    weights: Box<[u64]>,
    pub(super) passes: Box<[u128]>,
    /// The pass of the class that was served last.
    latest: u128,
}

impl Shares {
    pub(super) fn new(weights: Box<[u64]>) -> Self {
        Self { passes: weights.iter().map(|_| 0).collect(), weights, latest: 0 }
    }

    /// A class has something waiting again. It gets no credit for the time in which it had nothing.
    pub(super) fn join(&mut self, rank: usize) {
        self.passes[rank] = self.passes[rank].max(self.latest);
    }

    pub(super) fn spend(&mut self, rank: usize, cost: u64) {
        self.latest = self.passes[rank];
        self.passes[rank] += (u128::from(cost) << 32) / u128::from(self.weights[rank]);
    }

    /// How many times the share of one class goes into the whole.
    pub(super) fn parts(&self, rank: usize) -> u64 {
        self.weights.iter().sum::<u64>().div_ceil(self.weights[rank])
    }

    /// Puts other weights in force, for the same classes.
    pub(super) fn change(&mut self, weights: Box<[u64]>) {
        self.weights = weights;
    }
}
