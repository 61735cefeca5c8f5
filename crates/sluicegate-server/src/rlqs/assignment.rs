//! What an Envoy is told about a bucket.

use sluicegate_lease::Amount;

/// A token bucket, or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// Nothing passes.
    Nothing,
    /// This much passes.
    Tokens {
        /// The most tokens at once.
        most: u32,
        /// Tokens for each interval.
        fill: u32,
        /// The interval in seconds. Envoy knows whole seconds only.
        seconds: u32,
    },
}

/// Intervals in seconds. A longer one tells a small rate more exactly.
const INTERVALS: [u32; 8] = [1, 2, 5, 10, 30, 60, 300, 3_600];
/// With as many tokens for each interval, what is cut off is at most a hundredth.
const EXACT: u64 = 100;

impl Assignment {
    /// The token bucket for a part of a capacity, with the same part of its burst. Nothing is rounded up, except that a
    /// bucket has room for one token.
    pub fn of(part: Amount, capacity: Amount, burst: u64) -> Self {
        let fill = |seconds: u32| {
            let tokens = u128::from(part.millionths()) * u128::from(seconds) / 1_000_000;
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let exact = INTERVALS.into_iter().find(|seconds| fill(*seconds) >= EXACT);
        let seconds = exact.unwrap_or(INTERVALS[INTERVALS.len() - 1]);
        let (fill, whole) = (fill(seconds), capacity.millionths().max(part.millionths()).max(1));
        if fill == 0 {
            return Self::Nothing;
        }
        let most = u128::from(burst) * u128::from(part.millionths()) / u128::from(whole);
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Self::Tokens { most, fill: u32::try_from(fill).unwrap_or(u32::MAX), seconds }
    }

    /// This assignment in a form that replaces `before`: Envoy ignores a change of the interval alone.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        match (self, before) {
            (
                Self::Tokens { most, fill, seconds },
                Self::Tokens { most: most_before, fill: fill_before, seconds: seconds_before },
            ) if (most, fill) == (most_before, fill_before) && seconds != seconds_before => {
                // An exact number of tokens is at least 100; others have the longest interval both times.
                Self::Tokens { most, fill: fill.saturating_sub(1).max(1), seconds }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_lease::Amount;

    use super::Assignment;

    fn of(part: f64) -> Assignment {
        let part = Amount::from_f64(part).expect("an amount");
        Assignment::of(part, Amount::units(1_000), 100)
    }

    #[test]
    fn a_part_of_the_capacity_has_that_part_of_the_burst() {
        assert_eq!(of(600.9), Assignment::Tokens { most: 60, fill: 600, seconds: 1 });
        assert_eq!(of(25.5), Assignment::Tokens { most: 2, fill: 127, seconds: 5 });
        assert_eq!(of(0.01), Assignment::Tokens { most: 1, fill: 36, seconds: 3_600 });
        assert_eq!(of(0.0001), Assignment::Nothing);
        assert_eq!(of(0.0), Assignment::Nothing);
    }

    #[test]
    fn nothing_is_rounded_up_and_little_is_lost() {
        for millionths in (300_000..2_000_000_000_u64).step_by(9_999_991) {
            let part = Amount::from_millionths(millionths);
            let Assignment::Tokens { fill, seconds, .. } = of(part.as_f64()) else { panic!() };
            let rate = f64::from(fill) / f64::from(seconds);
            assert!(rate <= part.as_f64() && rate >= part.as_f64() * 0.99, "{part}: {rate}");
        }
    }

    #[test]
    fn a_change_of_the_interval_alone_changes_another_number_too() {
        let (slow, fast) = (of(50.0), of(100.0));
        assert_eq!(slow, Assignment::Tokens { most: 5, fill: 100, seconds: 2 });
        assert_eq!(fast.after(slow), fast);
        let other = Assignment::Tokens { most: 5, fill: 100, seconds: 1 };
        assert_eq!(slow.after(other), Assignment::Tokens { most: 5, fill: 99, seconds: 2 });
    }

    #[test]
    fn the_largest_amounts_fit() {
        let all = Assignment::of(Amount::MAX, Amount::MAX, u64::MAX);
        assert_eq!(all, Assignment::Tokens { most: u32::MAX, fill: 1_000_000_000, seconds: 1 });
    }
}
