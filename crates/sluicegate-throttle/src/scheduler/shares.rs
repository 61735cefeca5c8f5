use crate::error::{ConfigError, MAX_PARTITIONS};

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
        // Stride scheduling (Waldspurger and Weihl, 1995). Without the maximum, a class that was idle for an hour would
        // be served alone until it had caught up.
        self.passes[rank] = self.passes[rank].max(self.latest);
    }

    pub(super) fn spend(&mut self, rank: usize, cost: u64) {
        // Of the class that was served, before its pass moves: those that join begin where the others are.
        self.latest = self.passes[rank];
        // 32 bits of fraction, so that a small cost of a class with a large weight still counts. In 128 bits, the sum
        // does not overflow in the lifetime of a process.
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

/// Shares are kept in millionths, so that guarantees are exact.
const WHOLE: u64 = 1_000_000;

/// Parts of the work in flight, as in Netflix' partitioned limiters. Each part is guaranteed its share and may borrow
/// idle places.
///
/// A request starts at once if its partition runs fewer requests than its share, even if other partitions have borrowed
/// the place. Running requests are never stopped, so more requests than the limit run until borrowed places are given
/// back. All other requests start only while fewer requests than the limit run.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The first is for requests without a partition. It has no guaranteed share.
    list: Box<[Partition]>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Partition {
    /// In millionths of the limit.
    share: u64,
    pub(super) running: usize,
    pub(super) waiting: usize,
}

impl Partitions {
    /// No partitions: nothing is guaranteed.
    pub(super) fn new(shares: &[f64]) -> Result<Self, ConfigError> {
        if shares.len() > MAX_PARTITIONS {
            return Err(ConfigError::Partitions(shares.len()));
        }
        if let Some(&share) = shares.iter().find(|&&share| !(share > 0.0 && share <= 1.0)) {
            return Err(ConfigError::PartitionShare(share));
        }
        let shares = shares.iter().map(|share| ((share * WHOLE as f64).round() as u64).max(1));
        // A third, three times, is rounded to one millionth less or more than the whole.
        let sum: u64 = shares.clone().sum();
        if sum > WHOLE + MAX_PARTITIONS as u64 {
            return Err(ConfigError::PartitionSum(sum as f64 / WHOLE as f64));
        }
        let of = |share| Partition { share, ..Partition::default() };
        Ok(Self { list: std::iter::once(0).chain(shares).map(of).collect() })
    }

    /// Partitions, with the first, which has no share.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// The index of the partition that a request names. A partition that does not exist counts as none.
    pub(super) fn at(&self, named: Option<u8>) -> usize {
        named.map(|named| usize::from(named) + 1).filter(|&at| at < self.len()).unwrap_or_default()
    }

    /// How many of its requests may run at once, regardless of the others: its share of the limit, rounded up.
    pub(super) fn guaranteed(&self, at: usize, limit: usize) -> usize {
        let guaranteed = u128::from(self.list[at].share) * limit as u128;
        usize::try_from(guaranteed.div_ceil(u128::from(WHOLE))).unwrap_or(usize::MAX)
    }

    pub(super) fn is_below_share(&self, at: usize, limit: usize) -> bool {
        let Partition { share, running, .. } = self.list[at];
        // Equivalent to a comparison with the guarantee, but without a division, because every request runs this.
        share > 0 && running as u128 * u128::from(WHOLE) < u128::from(share) * limit as u128
    }

    /// The waiting partition that uses the smallest part of its share, among those that use less than their share.
    pub(super) fn owed(&self, limit: usize) -> Option<usize> {
        // The first in the list has no share, and nothing is owed to it.
        let owed = |&at: &usize| self.list[at].waiting > 0 && self.is_below_share(at, limit);
        let used = |&at: &usize| {
            self.list[at].running as u128 * u128::from(WHOLE) / u128::from(self.list[at].share)
        };
        (1..self.len()).filter(owed).min_by_key(used)
    }

    pub(super) fn get(&self, at: usize) -> &Partition {
        &self.list[at]
    }

    /// To count requests that begin and cease to run or to wait.
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Partition {
        &mut self.list[at]
    }

    /// Puts other shares in force, for the same partitions.
    pub(super) fn change(&mut self, shares: &Self) {
        for (own, new) in self.list.iter_mut().zip(&shares.list) {
            own.share = new.share;
        }
    }
}
