//! Counts of leased tokens.

/// What a [`Leased`](super::Leased) has done since it was made, as [`counts`](super::Leased::counts) shows
/// it. Clones of a store are counted together.
///
/// Every leased token is spent, given back, expired, or still [unspent](Self::unspent).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseCounts {
    /// Leases that were granted or refused by the server.
    pub leases: u64,
    /// Tokens taken out of the server.
    pub leased: u64,
    /// Tokens that requests have spent, minus those that were settled.
    pub spent: u64,
    /// Unspent tokens that were given back to the server.
    pub given_back: u64,
    /// Unspent tokens that were no longer valid. In a fixed window they are the price of leasing, because no other
    /// process could have spent them. Those of a bucket had drained.
    pub expired: u64,
    /// Tokens in hand.
    pub unspent: u64,
    /// Requests admitted without a call.
    pub admitted_here: u64,
    /// Requests refused without a call.
    pub refused_here: u64,
    /// Charges passed on to the server unchanged.
    pub passed_on: u64,
}

impl LeaseCounts {
    fn numbers(&mut self) -> [&mut u64; 9] {
        [
            &mut self.leases,
            &mut self.leased,
            &mut self.spent,
            &mut self.given_back,
            &mut self.expired,
            &mut self.unspent,
            &mut self.admitted_here,
            &mut self.refused_here,
            &mut self.passed_on,
        ]
    }

    pub(super) fn add(&mut self, mut other: Self) {
        for (own, other) in self.numbers().into_iter().zip(other.numbers()) {
            *own += *other;
        }
    }

    /// The increase since the last report. A counter that has decreased reports nothing until it exceeds its old value.
    pub(super) fn since(mut self, reported: &mut Self) -> Self {
        for (now, reported) in self.numbers().into_iter().zip(reported.numbers()) {
            let more = now.saturating_sub(*reported);
            *reported += more;
            *now = more;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_decreased_is_not_reported_twice() {
        let (mut totals, mut reported) = (LeaseCounts::default(), LeaseCounts::default());
        let mut spent = |now| {
            totals.spent = now;
            totals.since(&mut reported).spent
        };
        assert_eq!([5, 5, 3, 4, 7].map(&mut spent), [5, 0, 0, 0, 2]);
    }
}
