use crate::error::{ConfigError, MAX_PARTITIONS};

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
struct Partition {
    /// In millionths of the limit.
    share: u64,
    running: usize,
    waiting: usize,
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
        let owed = |&at: &usize| self.list[at].waiting > 0 && self.is_below_share(at, limit);
        let used = |&at: &usize| {
            self.list[at].running as u128 * u128::from(WHOLE) / u128::from(self.list[at].share)
        };
        (1..self.len()).filter(owed).min_by_key(used)
    }

    pub(super) fn running(&self, at: usize) -> usize {
        self.list[at].running
    }

    pub(super) fn waiting(&self, at: usize) -> usize {
        self.list[at].waiting
    }

    pub(super) fn start(&mut self, at: usize) {
        self.list[at].running += 1;
    }

    pub(super) fn end(&mut self, at: usize) {
        self.list[at].running -= 1;
    }

    pub(super) fn wait(&mut self, at: usize) {
        self.list[at].waiting += 1;
    }

    pub(super) fn leave(&mut self, at: usize) {
        self.list[at].waiting -= 1;
    }

    /// Puts other shares in force, for the same partitions.
    pub(super) fn change(&mut self, shares: &Self) {
        for (own, new) in self.list.iter_mut().zip(&shares.list) {
            own.share = new.share;
        }
    }
}
