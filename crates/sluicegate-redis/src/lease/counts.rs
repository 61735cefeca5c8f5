//! Counts of leased tokens.

use crate::observe::report::Leases;

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

/// The counters under one lock.
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
    /// The increase since the last report. A counter that has decreased reports nothing until it exceeds its old value.
    pub(super) fn since(&self, reported: &mut Self) -> Leases {
        let more = |now: u64, reported: &mut u64| {
            let more = now.saturating_sub(*reported);
            *reported += more;
            more
        };
        Leases {
            leases: more(self.leases, &mut reported.leases),
            taken: more(self.leased, &mut reported.leased),
            spent: more(self.spent, &mut reported.spent),
            given_back: more(self.given_back, &mut reported.given_back),
            expired: more(self.expired, &mut reported.expired),
            admitted: more(self.here, &mut reported.here),
            refused: more(self.refused, &mut reported.refused),
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
    fn a_counter_that_decreased_is_not_reported_twice() {
        let (mut totals, mut reported) = (Totals::default(), Totals::default());
        let mut spent = |now| {
            totals.spent = now;
            totals.since(&mut reported).spent
        };
        assert_eq!([5, 5, 3, 4, 7].map(&mut spent), [5, 0, 0, 0, 2]);
    }
}
