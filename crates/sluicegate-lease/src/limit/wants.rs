use std::fmt;

use crate::amount::Amount;

/// What a client asks its server for.
///
/// ```
/// use sluicegate_lease::{Amount, Wants};
///
/// // As much as is asked of the client, refused or not.
/// let learned = Wants::learned();
/// // Keeps a little at hand while nobody asks, and never asks for more than a part of what there is.
/// let bounded = Wants::learned().at_least(Amount::units(1)).at_most(Amount::units(500));
/// // The same amount all the time.
/// let fixed = Wants::fixed(Amount::units(30));
/// assert_eq!(fixed, Amount::units(30).into());
/// # let _ = (learned, bounded);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wants {
    least: Amount,
    most: Amount,
}

impl Wants {
    /// What is asked of the limit: all requests in a period, admitted, refused or waiting, or the most in flight at once.
    /// It rises with the demand at once, and falls slowly, but soon when a stream of requests stops. A client of which
    /// nothing is asked wants nothing.
    pub const fn learned() -> Self {
        Self { least: Amount::ZERO, most: Amount::MAX }
    }

    /// This much, whatever is asked.
    pub const fn fixed(amount: Amount) -> Self {
        Self { least: amount, most: amount }
    }

    /// Wants at least so much.
    #[must_use]
    pub fn at_least(self, least: Amount) -> Self {
        Self { least, most: self.most.max(least) }
    }

    /// Wants at most so much.
    #[must_use]
    pub fn at_most(self, most: Amount) -> Self {
        Self { least: self.least.min(most), most }
    }

    /// What is wanted before anything was asked.
    pub const fn least(&self) -> Amount {
        self.least
    }

    pub(super) fn of(&self, learned: Amount) -> Amount {
        learned.clamp(self.least, self.most)
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.least == self.most
    }
}

impl Default for Wants {
    fn default() -> Self {
        Self::learned()
    }
}

impl From<Amount> for Wants {
    fn from(amount: Amount) -> Self {
        Self::fixed(amount)
    }
}

impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_fixed() => write!(f, "{}", self.least),
            _ if *self == Self::learned() => f.write_str("learned"),
            _ => write!(f, "learned, {} to {}", self.least, self.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_kept_within_bounds() {
        let bounded = Wants::learned().at_least(Amount::units(2)).at_most(Amount::units(9));
        let of = |wants: Wants, units| wants.of(Amount::units(units)).as_f64();
        assert_eq!([0, 5, 10].map(|units| of(bounded, units)), [2.0, 5.0, 9.0]);
        assert_eq!([0, 5, 10].map(|units| of(Wants::learned(), units)), [0.0, 5.0, 10.0]);
        assert_eq!([0, 5, 10].map(|units| of(Amount::units(7).into(), units)), [7.0; 3]);
        // The bound that was given last counts.
        assert_eq!(of(bounded.at_most(Amount::units(1)), 5), 1.0);
        assert_eq!(of(bounded.at_least(Amount::units(20)), 5), 20.0);
    }
}
