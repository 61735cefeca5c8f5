//! Dividing a capacity among those who want parts of it.
//!
//! [`max_min`] is weighted max-min fairness by progressive filling, also called water filling (Bertsekas and Gallager,
//! *Data Networks*, section 6.5.2): nobody gets more than wanted, everything that is wanted is handed out as long as
//! there is some, and nobody's share per weight can grow without taking from a smaller one.
//! [`proportional`] is the division of the same name in Doorman: an equal share by weight for everyone, and what is
//! left over in proportion to what is wanted beyond it.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::amount::Amount;

/// What one participant wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The most that it can use.
    pub wants: Amount,
    /// Its part in relation to others. Zero gets nothing while others want everything.
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
        /// What is wanted beyond equal shares.
        excess: Amount,
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
                want.wants.min(equal + extra.share(beyond.millionths(), excess.millionths()))
            }
        }
    }
}

/// Divides `capacity` by weighted max-min fairness. The order of `wants` does not matter; it is sorted.
///
/// Takes O(n log n) for `n` participants.
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
pub fn max_min(capacity: Amount, wants: &mut [Want]) -> Division {
    wants.sort_unstable_by(by_wants_per_weight);
    let mut left = capacity;
    let mut weights = wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.weight));
    for want in &*wants {
        let level = left.share(want.weight, weights);
        if want.wants > level {
            return Division::Level { capacity: left, weights };
        }
        left = left - want.wants;
        weights -= want.weight;
    }
    Division::Enough
}

/// Divides `capacity` as Doorman's proportional share does.
pub fn proportional(capacity: Amount, wants: &[Want]) -> Division {
    if wants.iter().map(|want| want.wants).sum::<Amount>() <= capacity {
        return Division::Enough;
    }
    let weights = wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.weight));
    let mut extra = capacity;
    let mut excess = Amount::ZERO;
    for want in wants {
        let equal = capacity.share(want.weight, weights);
        extra = extra.saturating_sub(want.wants.min(equal));
        excess = excess + want.wants.saturating_sub(equal);
    }
    Division::Proportional { capacity, weights, extra, excess }
}

/// Smallest `wants ÷ weight` first. Compares products, which are exact.
fn by_wants_per_weight(one: &Want, other: &Want) -> Ordering {
    let product = |wants: Amount, weight: u64| u128::from(wants.millionths()) * u128::from(weight);
    product(one.wants, other.weight).cmp(&product(other.wants, one.weight))
}
