//! A part of every limit, as one number that can be read and written at once.

use core::cmp::Ordering;
use core::fmt;

use crate::exact::gcd;

/// A part of a whole, such as one of 96.
///
/// It is kept as the weight of one request, which is 96 in this example. Only the weight of requests differs between
/// parts. The words of a bucket therefore mean the same in every part, and a part can change while requests are
/// counted.
///
/// One of `n` is exact up to 2^27. Other parts are rounded down by less than one in 2^26.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part(u32);

/// Bits that say by how many bits the weight is shifted.
const SHIFT_BITS: u32 = 5;
const MOST_SHIFT: u32 = 26;
/// The largest weight.
const MOST: u64 = (1 << (32 - SHIFT_BITS)) - 1;

impl Part {
    /// The whole.
    pub const WHOLE: Self = Self(1 << SHIFT_BITS);

    /// `parts / of`, at most the whole. `None` when that is nothing, or less than one of 2^27.
    pub fn of(parts: u64, of: u64) -> Option<Self> {
        if parts == 0 {
            return None;
        }
        if parts >= of {
            return Some(Self::WHOLE);
        }
        // 1 / n needs no fraction.
        let shift = if of % parts == 0 {
            0
        } else {
            (0..=MOST_SHIFT).rev().find(|shift| weight(parts, of, *shift) <= MOST.into())?
        };
        let weight = u64::try_from(weight(parts, of, shift)).ok()?;
        (weight <= MOST).then_some(Self((weight as u32) << SHIFT_BITS | shift))
    }

    /// `parts / of`, rounded down where that takes more than 64 bits.
    #[doc(hidden)]
    pub fn of_wide(parts: u128, of: u128) -> Option<Self> {
        let divisor = gcd(parts, of).max(1);
        let (parts, of) = (parts / divisor, of / divisor);
        let shift = 64 - of.leading_zeros().min(64);
        // Too small rather than too large: the numerator loses its lower bits, and the denominator gains one.
        let of = if shift == 0 { of } else { (of >> shift) + 1 };
        Self::of(u64::try_from(parts >> shift).ok()?, u64::try_from(of).unwrap_or(u64::MAX))
    }

    /// One of `members` equal parts, and of 2^27 if there are more.
    pub fn one_of(members: u64) -> Self {
        Self::of(1, members.min(MOST)).unwrap_or(Self::WHOLE)
    }

    /// The part as a number, 1 for the whole.
    pub fn as_f64(self) -> f64 {
        let (weight, shift) = self.parts();
        (1_u64 << shift) as f64 / weight as f64
    }

    /// The part as `(parts, of)`.
    pub fn as_ratio(self) -> (u64, u64) {
        let (weight, shift) = self.parts();
        (1 << shift, weight)
    }

    /// `whole` multiplied by the weight of this part, rounded up. `None` beyond 2^64.
    #[inline]
    pub(crate) fn weigh(self, whole: u64) -> Option<u64> {
        let (weight, shift) = self.parts();
        let heavy = whole.checked_mul(weight)?;
        // Rounded up, so that the parts of all members together are never more than the whole.
        Some((heavy >> shift) + u64::from(heavy & ((1 << shift) - 1) != 0))
    }

    /// This part of `count`, rounded down.
    pub(crate) fn portion(self, count: u64) -> u64 {
        let (weight, shift) = self.parts();
        // Rounded down, for the same reason as the weight is rounded up.
        let portion = (u128::from(count) << shift) / u128::from(weight);
        u64::try_from(portion).unwrap_or(count)
    }

    /// As a number other than 0.
    #[inline]
    #[doc(hidden)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The part with these bits; 0 stands for none.
    #[inline]
    #[doc(hidden)]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => None,
            bits => Some(Self(bits)),
        }
    }

    #[inline]
    const fn parts(self) -> (u64, u32) {
        ((self.0 >> SHIFT_BITS) as u64, self.0 & ((1 << SHIFT_BITS) - 1))
    }
}

/// `of / parts`, rounded up, in units of `2^-shift`.
fn weight(parts: u64, of: u64, shift: u32) -> u128 {
    (u128::from(of) << shift).div_ceil(parts.into())
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((one, one_shift), (two, two_shift)) = (self.parts(), other.parts());
        // A larger weight means a smaller part.
        (two << one_shift).cmp(&(one << two_shift))
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, of) = self.as_ratio();
        write!(f, "Part({parts}/{of})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_of_n_is_exact() {
        for n in [1, 2, 96, 1_000_003, MOST] {
            assert_eq!(Part::one_of(n).as_ratio(), (1, n));
        }
        assert_eq!((Part::of(1, MOST + 1), Part::of(1, u64::MAX)), (None, None));
        assert_eq!(Part::one_of(u64::MAX).as_ratio(), (1, MOST));
        assert_eq!(Part::of(5, 480), Part::of(1, 96));
        assert_eq!(Part::of(0, 7), None);
        assert_eq!(Part::of(8, 7), Some(Part::WHOLE));
    }

    proptest! {
        #[test]
        fn a_part_is_never_more_than_it_was_asked_for_and_hardly_less(
            of in 1..1_u64 << 40, share in 0.0..1.0_f64
        ) {
            let parts = ((of as f64 * share) as u64).clamp(1, of);
            prop_assume!(of / parts < MOST);
            let (kept, whole) = Part::of(parts, of).expect("something").as_ratio();
            prop_assert!(u128::from(kept) * u128::from(of) <= u128::from(whole) * u128::from(parts));
            let exact = parts as f64 / of as f64;
            prop_assert!(kept as f64 / whole as f64 >= exact * (1.0 - 3e-8));
        }

        #[test]
        fn parts_are_ordered_by_size(a in 1..1_000_u64, b in 1..1_000_u64, of in 1_000..2_000_u64) {
            let (one, two) = (Part::of(a, of).expect("a part"), Part::of(b, of).expect("a part"));
            prop_assert_eq!(one.cmp(&two), a.cmp(&b));
        }
    }
}
