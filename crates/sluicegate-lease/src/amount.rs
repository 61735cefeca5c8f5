use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

/// An amount of capacity, in millionths of a unit.
///
/// Grants are cut from integers, so that their sum is never more than there is, not even by a rounding error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// No capacity.
    pub const ZERO: Self = Self(0);
    /// The largest amount: a thousand million units.
    pub const MAX: Self = Self(1_000_000_000 * PER_UNIT);

    /// This many whole units, at most [`MAX`](Self::MAX).
    pub const fn units(units: u64) -> Self {
        if units > Self::MAX.0 / PER_UNIT { Self::MAX } else { Self(units * PER_UNIT) }
    }

    /// This many units, rounded down to a millionth and cut to [`MAX`](Self::MAX).
    ///
    /// `None` if the number is negative or not finite.
    pub fn from_f64(units: f64) -> Option<Self> {
        if !units.is_finite() || units < 0.0 {
            return None;
        }
        // A cast from a float saturates.
        Some(Self((units * PER_UNIT as f64) as u64).min(Self::MAX))
    }

    /// The amount in units.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / PER_UNIT as f64
    }

    /// The whole units in it.
    pub const fn as_units(self) -> u64 {
        self.0 / PER_UNIT
    }

    /// Whether this is no capacity at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self − other`, or zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The amount in millionths of a unit.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// This many millionths of a unit, at most [`MAX`](Self::MAX).
    pub const fn from_millionths(millionths: u64) -> Self {
        if millionths > Self::MAX.0 { Self::MAX } else { Self(millionths) }
    }

    /// `self × part ÷ whole`, rounded down; zero if `whole` is zero.
    #[must_use]
    pub fn share(self, part: u64, whole: u64) -> Self {
        let Some(share) = (u128::from(self.0) * u128::from(part)).checked_div(u128::from(whole))
        else {
            return Self::ZERO;
        };
        u64::try_from(share).map_or(Self::MAX, Self::from_millionths)
    }
}

/// The resolution of amounts.
const PER_UNIT: u64 = 1_000_000;

/// Sums saturate: a thousand holders of the largest amount still fit.
impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "{self} - {other}");
        self.saturating_sub(other)
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}
