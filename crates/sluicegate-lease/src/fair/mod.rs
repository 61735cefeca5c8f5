//! Dividing a capacity among those who want parts of it.
//!
//! [`max_min`] is weighted max-min fairness, also called water filling (Bertsekas and Gallager, *Data Networks*, section
//! 6.5.2): nobody gets more than wanted, everything that is wanted is handed out as long as there is some, and nobody's
//! share per weight can grow without taking from a smaller one. The level itself is
//! [`WaterLevel`], which also divides limits among live members.
//! [`proportional`] is the division of the same name in Doorman: an equal share by weight for everyone, and what is
//! left over in proportion to what is wanted beyond it.

use sluicegate_core::adapter::WaterLevel;

use crate::amount::Amount;

/// What one participant wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The most that it can use.
    pub wants: Amount,
    /// Its part in relation to others. With zero, it gets nothing unless there is enough for everyone.
    pub weight: u64,
}

/// How a capacity is divided: gives everyone's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// There is enough: everyone gets what is wanted.
    Enough,
    /// Everyone gets at most `capacity × weight ÷ weights`: the water level.
    Level {
        /// What those share who don't get all that they want.
        capacity: Amount,
        /// The sum of their weights.
        weights: u64,
    },
    /// Everyone gets `equal × weight ÷ weights`, and of what is wanted beyond it the part `extra ÷ excess`.
    Proportional {
        /// The whole capacity.
        capacity: Amount,
        /// The sum of all weights.
        weights: u64,
        /// What is left by those who want less than their equal share.
        extra: Amount,
        /// What is wanted beyond equal shares, in millionths. Wants of many do not fit an amount.
        excess: u128,
    },
}

impl Division {
    /// The share of a participant.
    pub fn share(&self, want: Want) -> Amount {
        match *self {
            Self::Enough => want.wants,
            Self::Level { capacity, weights } => {
                want.wants.min(capacity.share(want.weight, weights))
            }
            Self::Proportional { capacity, weights, extra, excess } => {
                let equal = capacity.share(want.weight, weights);
                if want.wants <= equal {
                    return want.wants;
                }
                let beyond = want.wants - equal;
                let beyond = u128::from(extra.millionths()) * u128::from(beyond.millionths());
                let part = u64::try_from(beyond / excess.max(1)).unwrap_or(u64::MAX);
                want.wants.min(equal + Amount::from_millionths(part))
            }
        }
    }
}

/// Divides `capacity` by weighted max-min fairness. The order of `wants` does not matter, and changes.
///
/// Takes O(n) for `n` participants.
///
/// ```
/// use sluicegate_lease::Amount;
/// use sluicegate_lease::fair::{Want, max_min};
///
/// let wants = [500, 90, 10].map(Amount::units);
/// let weights = [2, 1, 3];
/// let participants = [0, 1, 2].map(|i| Want { wants: wants[i], weight: weights[i] });
///
/// let division = max_min(Amount::units(300), &mut participants.clone());
/// assert_eq!(participants.map(|want| division.share(want)), [200, 90, 10].map(Amount::units));
/// ```
///
/// # Panics
///
/// When the weights together do not fit 64 bits.
pub fn max_min(capacity: Amount, wants: &mut [Want]) -> Division {
    let pair = |want: &Want| (want.wants.millionths(), want.weight);
    match WaterLevel::of(capacity.millionths(), wants, pair) {
        WaterLevel::Short { left, weights } => {
            Division::Level { capacity: Amount::from_millionths(left), weights }
        }
        WaterLevel::Enough { left } => {
            // Those without a weight come last. If they do not get everything, they get nothing: no level could be
            // named at which a weight of zero has a share.
            let weightless = wants.iter().filter(|want| want.weight == 0);
            match weightless.map(|want| want.wants).sum::<Amount>().millionths() <= left {
                true => Division::Enough,
                // Everyone with a weight gets what is wanted, because nobody wants more than the capacity.
                false => Division::Level { capacity, weights: 1 },
            }
        }
    }
}

/// Divides `capacity` as Doorman's proportional share does.
pub fn proportional(capacity: Amount, wants: &[Want]) -> Division {
    if wants.iter().map(|want| want.wants).sum::<Amount>() <= capacity {
        return Division::Enough;
    }
    let weights = wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.weight));
    let mut extra = capacity;
    let mut excess = 0;
    for want in wants {
        let equal = capacity.share(want.weight, weights);
        extra = extra.saturating_sub(want.wants.min(equal));
        excess += u128::from(want.wants.saturating_sub(equal).millionths());
    }
    Division::Proportional { capacity, weights, extra, excess }
}

/// A band of priority. Band 0 is served first; a band gets what the bands before it leave, and its floor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Band(pub u8);

/// What a client wants in one band.
///
/// A client has one demand. A server that asks on behalf of its clients has several: see
/// [`Pool::demands`](crate::Pool::demands).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The band of priority.
    pub band: Band,
    /// The most that can be used, and the weight.
    pub want: Want,
    /// Whether a part of a unit is of no use, as for places of a [gauge](crate::LeasedLimit::gauge).
    pub whole: bool,
}

impl Demand {
    /// Wants `wants` in the first band, with a weight of 1.
    pub const fn of(wants: Amount) -> Self {
        Self { band: Band(0), want: Want { wants, weight: 1 }, whole: false }
    }

    /// Sets the weight.
    #[must_use]
    pub const fn weight(mut self, weight: u32) -> Self {
        self.want.weight = weight as u64;
        self
    }

    /// Sets the band.
    #[must_use]
    pub const fn band(mut self, band: u8) -> Self {
        self.band = Band(band);
        self
    }

    /// Asks for whole units. Where a share is not whole, clients have the next unit in turns, for a time in proportion to
    /// the rest.
    #[must_use]
    pub const fn whole(mut self) -> Self {
        self.whole = true;
        self
    }
}

#[cfg(test)]
mod tests;
