use std::cmp::Ordering;

/// The water level of weighted max-min fairness (Bertsekas and Gallager, *Data Networks*, section 6.5.2).
///
/// Nobody gets more than wanted, and nobody's part by weight can grow without taking from a smaller one. A level is
/// exact: no division is rounded. Taker and weight are compared by their products.
///
/// ```
/// use sluicegate::adapter::WaterLevel;
///
/// // Wants and weights.
/// let mut takers = [(500, 2), (90, 1), (10, 3)];
/// let level = WaterLevel::of(300, &mut takers, |taker| *taker);
/// // The first does not get all that it wants. It gets 2/2 of the 200 that the others leave.
/// assert_eq!(level, WaterLevel::Short { left: 200, weights: 2 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaterLevel {
    /// Everyone with a weight gets what is wanted.
    Enough {
        /// What nobody with a weight wants.
        left: u64,
    },
    /// Everyone gets what is wanted, or `left × weight ÷ weights` if that is less.
    Short {
        /// What those share who do not get all that they want.
        left: u64,
        /// The sum of their weights.
        weights: u64,
    },
}

impl WaterLevel {
    /// Divides `whole` among takers; `want` tells what a taker wants, and its weight. A weight of zero takes no part.
    /// The order of the takers does not matter, and changes.
    ///
    /// Takes O(n) for `n` takers: they are divided at the median until the level is found, and not sorted.
    ///
    /// # Panics
    ///
    /// When the weights together do not fit 64 bits.
    pub fn of<T>(whole: u64, takers: &mut [T], want: impl Fn(&T) -> (u64, u64)) -> Self {
        let (wanted, mut weights) = sums(takers, &want);
        if wanted <= u128::from(whole) {
            return Self::Enough { left: whole - wanted as u64 };
        }
        let mut left = whole;
        // Those whose demand may be met, or not: the level lies among them.
        let mut open = takers;
        while !open.is_empty() {
            let middle = open.len() / 2;
            let (below, median, above) =
                open.select_nth_unstable_by(middle, |one, other| by_ratio(want(one), want(other)));
            let (wanted, below_weights) = sums(below, &want);
            let (median_wants, median_weight) = want(median);
            let is_met = wanted <= u128::from(left) && {
                let left = u128::from(left) - wanted;
                u128::from(median_wants) * u128::from(weights - below_weights)
                    <= left * u128::from(median_weight)
            };
            // Met for the median is met for all that want less by weight; not met, it is not met for those above.
            open = if is_met && median_weight > 0 {
                left -= wanted as u64 + median_wants;
                weights -= below_weights + median_weight;
                above
            } else {
                below
            };
        }
        Self::Short { left, weights }
    }
}

/// What those with a weight want together, and their weights together.
fn sums<T>(takers: &[T], want: impl Fn(&T) -> (u64, u64)) -> (u128, u64) {
    takers.iter().map(want).filter(|(_, weight)| *weight > 0).fold(
        (0, 0),
        |(wanted, weights), (wants, weight)| {
            let weights: Option<u64> = u64::checked_add(weights, weight);
            (wanted + u128::from(wants), weights.expect("the weights together fit 64 bits"))
        },
    )
}

/// The smallest wants ÷ weight first. Those without a weight come last: a product with zero would be equal to any.
fn by_ratio((wants, weight): (u64, u64), (other, other_weight): (u64, u64)) -> Ordering {
    (weight == 0).cmp(&(other_weight == 0)).then_with(|| {
        let product = |wants: u64, weight: u64| u128::from(wants) * u128::from(weight);
        product(wants, other_weight).cmp(&product(other, weight))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Fills one taker after the other, the smallest wants by weight first.
    fn by_sorting(whole: u64, takers: &[(u64, u64)]) -> WaterLevel {
        let mut sorted: Vec<_> = takers.iter().filter(|(_, weight)| *weight > 0).collect();
        sorted.sort_by(|one, other| by_ratio(**one, **other));
        let (mut left, mut weights) = (whole, sorted.iter().map(|(_, weight)| weight).sum::<u64>());
        for &&(wants, weight) in &sorted {
            if u128::from(wants) * u128::from(weights) > u128::from(left) * u128::from(weight) {
                return WaterLevel::Short { left, weights };
            }
            left -= wants;
            weights -= weight;
        }
        WaterLevel::Enough { left }
    }

    #[test]
    fn takers_without_a_weight_take_no_part() {
        let level = |whole, takers: &[(u64, u64)]| {
            WaterLevel::of(whole, &mut takers.to_vec(), |taker| *taker)
        };
        assert_eq!(level(150, &[(100, 0), (100, 1)]), WaterLevel::Enough { left: 50 });
        let short = WaterLevel::Short { left: 90, weights: 1 };
        assert_eq!(level(90, &[(100, 0), (0, 0), (100, 1), (5, 0)]), short);
        assert_eq!(level(90, &[(100, 0)]), WaterLevel::Enough { left: 90 });
        assert_eq!(level(0, &[]), WaterLevel::Enough { left: 0 });
    }

    #[test]
    fn the_largest_demands_and_weights_fit() {
        let takers = &mut [(u64::MAX, u64::MAX / 2), (u64::MAX, u64::MAX / 2)];
        let level = WaterLevel::of(u64::MAX, takers, |taker| *taker);
        assert_eq!(level, WaterLevel::Short { left: u64::MAX, weights: u64::MAX - 1 });
    }

    proptest! {
        #[test]
        fn the_level_is_that_of_filling_one_after_the_other(
            whole in 0..400_u64,
            mut takers in prop::collection::vec((0..60_u64, 0..5_u64), 0..40),
        ) {
            let expected = by_sorting(whole, &takers);
            prop_assert_eq!(WaterLevel::of(whole, &mut takers, |taker| *taker), expected);
        }

        #[test]
        fn the_level_of_large_numbers_is_that_of_filling_one_after_the_other(
            whole in any::<u64>(),
            mut takers in prop::collection::vec((any::<u64>(), 0..1_u64 << 58), 0..40),
        ) {
            let expected = by_sorting(whole, &takers);
            prop_assert_eq!(WaterLevel::of(whole, &mut takers, |taker| *taker), expected);
        }
    }
}
