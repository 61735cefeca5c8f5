//! Parts by demand: weighted max-min fairness, also called water filling (Bertsekas and Gallager, *Data Networks*,
//! section 6.5.2).

use super::level::WaterLevel;
use crate::limit::Part;

/// The demand of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// How much, in the unit of the whole.
    pub wants: u64,
    /// Its weight, used among members whose demand cannot be met. With a weight of zero, a member gets nothing.
    pub weight: u32,
}

/// Divides `whole` among members, in the same order.
///
/// While they want more than the whole, nobody gets more than wanted, and nobody's part by weight can grow without
/// taking from a smaller one. What is left when all have what they want is divided by weight, so that a sudden rush finds
/// something. The parts are exact, rounded down to a [`Part`], and together never more than the whole.
///
/// Takes O(n) for `n` members.
///
/// ```
/// use sluicegate::store::{Want, fair_parts};
///
/// let wants = [(500, 2), (90, 1), (10, 3)].map(|(wants, weight)| Want { wants, weight });
/// let parts = fair_parts(300, &wants).map(|part| part.unwrap().as_f64() * 300.0);
/// assert_eq!(parts.map(f64::round).collect::<Vec<_>>(), [200.0, 90.0, 10.0]);
/// ```
pub fn fair_parts(whole: u64, wants: &[Want]) -> impl Iterator<Item = Option<Part>> {
    let pair = |want: &Want| (want.wants, u64::from(want.weight));
    let level = WaterLevel::of(whole, &mut wants.to_vec(), pair);
    let all_weights: u64 = wants.iter().map(|want| u64::from(want.weight)).sum();
    wants.iter().map(move |want| {
        if want.weight == 0 {
            return None;
        }
        let (whole, wanted) = (u128::from(whole), u128::from(want.wants));
        let by_weight = |left| u128::from(left) * u128::from(want.weight);
        match level {
            // The demand, and a part of what is left.
            WaterLevel::Enough { left } => {
                let all = u128::from(all_weights);
                Part::of_wide(wanted * all + by_weight(left), whole * all)
            }
            WaterLevel::Short { left, weights } => {
                let weights = u128::from(weights);
                match wanted * weights <= by_weight(left) {
                    true => Part::of_wide(wanted, whole),
                    false => Part::of_wide(by_weight(left), whole * weights),
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(whole: u64, wants: &[(u64, u32)]) -> Vec<f64> {
        let wants: Vec<_> = wants.iter().map(|&(wants, weight)| Want { wants, weight }).collect();
        let parts = fair_parts(whole, &wants);
        parts.map(|part| part.map_or(0.0, |part| part.as_f64() * whole as f64)).collect()
    }

    fn about(parts: &[f64], expected: &[f64]) -> bool {
        parts.len() == expected.len()
            && parts.iter().zip(expected).all(|(part, expected)| (part - expected).abs() < 1e-3)
    }

    #[test]
    fn the_worked_example_of_data_networks_is_divided_as_there() {
        // A whole of 10 among wants of 2, 2.6, 4 and 5: 2, 2.6, 2.7 and 2.7.
        assert!(about(&of(100, &[(20, 1), (26, 1), (40, 1), (50, 1)]), &[20.0, 26.0, 27.0, 27.0]));
    }

    #[test]
    fn weights_divide_what_is_short_and_what_is_left() {
        assert!(about(&of(90, &[(100, 2), (100, 1)]), &[60.0, 30.0]));
        assert!(about(&of(90, &[(10, 2), (20, 1)]), &[50.0, 40.0]));
        assert!(about(&of(90, &[(0, 1), (0, 1), (0, 1)]), &[30.0; 3]));
        assert!(about(&of(90, &[(100, 0), (100, 1)]), &[0.0, 90.0]));
        assert!(about(&of(150, &[(100, 0), (0, 0), (100, 1), (0, 1)]), &[0.0, 0.0, 125.0, 25.0]));
        assert!(about(&of(150, &[(100, 0)]), &[0.0]));
    }

    #[test]
    fn equal_wants_get_exactly_equal_parts() {
        let parts = fair_parts(2_000_000, &[Want { wants: 7_000_000, weight: 5 }; 96]);
        parts.for_each(|part| assert_eq!(part.expect("a part").as_ratio(), (1, 96)));
    }

    proptest! {
        #[test]
        fn parts_are_max_min_fair_and_never_more_than_the_whole(
            whole in 1..1_u64 << 40,
            wants in prop::collection::vec((0..1_u64 << 42, 1..100_u32), 1..40),
        ) {
            let parts = of(whole, &wants);
            let sum: f64 = parts.iter().sum();
            prop_assert!(sum <= whole as f64 * (1.0 + 1e-12), "{sum} of {whole}");
            // Parts below one in 2^27 of the whole are dropped.
            prop_assert!(sum >= whole as f64 * (1.0 - 1e-6), "{sum} of {whole}");
            let by_weight = |at: usize| parts[at] / f64::from(wants[at].1);
            let level = (0..wants.len()).map(by_weight).fold(0.0, f64::max);
            let is_short = wants.iter().map(|want| want.0).sum::<u64>() > whole;
            for at in (0..wants.len()).filter(|_| is_short) {
                let has_all = parts[at] >= wants[at].0 as f64 * (1.0 - 1e-6) - 1e-6 * whole as f64;
                prop_assert!(has_all || by_weight(at) >= level * (1.0 - 1e-6));
            }
        }
    }
}
