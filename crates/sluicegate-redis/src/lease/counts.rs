//! What became of the tokens.

use crate::observe::report::Leases;

/// What a [`Leased`](super::Leased) has done since it was made, as [`counts`](super::Leased::counts) shows
/// it. Clones of a store are counted together.
///
/// What was leased is spent, given back, expired, or [unspent](Self::unspent) as yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseCounts {
    /// Leases that the server granted or refused.
    pub leases: u64,
    /// Tokens that were taken out.
    pub leased: u64,
    /// Tokens that requests have spent, less what was settled.
    pub spent: u64,
    /// Unspent tokens that were given back to the server.
    pub given_back: u64,
    /// Unspent tokens that were not good any more. In a fixed window they are what leasing costs: nobody else
    /// could have spent them. Those of a bucket had drained.
    pub expired: u64,
    /// Tokens to be spent.
    pub unspent: u64,
    /// Requests that were admitted without asking.
    pub admitted_here: u64,
    /// Requests that were refused without asking.
    pub refused_here: u64,
    /// Charges that were passed on to the server as they were.
    pub passed_on: u64,
}

/// What is counted under each lock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) leases: u64,
    pub(super) leased: u64,
    pub(super) spent: u64,
    pub(super) given_back: u64,
    pub(super) expired: u64,
    pub(super) here: u64,
    pub(super) refused: u64,
}

impl Totals {
    /// What there is more of than was told. Nothing, of what has become less: it is told once it is more again.
    pub(super) fn since(&self, told: &mut Self) -> Leases {
        let more = |now: u64, told: &mut u64| {
            let more = now.saturating_sub(*told);
            *told += more;
            more
        };
        Leases {
            leases: more(self.leases, &mut told.leases),
            taken: more(self.leased, &mut told.leased),
            spent: more(self.spent, &mut told.spent),
            given_back: more(self.given_back, &mut told.given_back),
            expired: more(self.expired, &mut told.expired),
            admitted: more(self.here, &mut told.here),
            refused: more(self.refused, &mut told.refused),
        }
    }
}

impl LeaseCounts {
    pub(super) fn add(&mut self, totals: &Totals, unspent: u64) {
        self.leases += totals.leases;
        self.leased += totals.leased;
        self.spent += totals.spent;
        self.given_back += totals.given_back;
        self.expired += totals.expired;
        self.unspent += unspent;
        self.admitted_here += totals.here;
        self.refused_here += totals.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_become_less_is_not_told_twice() {
        let (mut totals, mut told) = (Totals::default(), Totals::default());
        let mut spent = |now| {
            totals.spent = now;
            totals.since(&mut told).spent
        };
        assert_eq!([5, 5, 3, 4, 7].map(&mut spent), [5, 0, 0, 0, 2]);
    }
}
