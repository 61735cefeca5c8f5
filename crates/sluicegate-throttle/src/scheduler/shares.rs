/// Weighted shares of the classes, by stride scheduling. The class with the lowest pass is next. Each request that it
/// starts moves its pass forward by its cost divided by the weight.
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

    /// Called when a class has waiting requests again. It gets no credit for the time in which it had none.
    pub(super) fn join(&mut self, rank: usize) {
        self.passes[rank] = self.passes[rank].max(self.latest);
    }

    pub(super) fn spend(&mut self, rank: usize, cost: u64) {
        self.latest = self.passes[rank];
        self.passes[rank] += (u128::from(cost) << 32) / u128::from(self.weights[rank]);
    }

    /// The whole divided by the share of a class.
    pub(super) fn parts(&self, rank: usize) -> u64 {
        self.weights.iter().sum::<u64>().div_ceil(self.weights[rank])
    }

    /// Puts other weights in force, for the same classes.
    pub(super) fn change(&mut self, weights: Box<[u64]>) {
        self.weights = weights;
    }
}
