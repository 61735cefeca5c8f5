use std::time::Duration;

use sluicegate_core::Limit;

use crate::amount::Amount;

/// The limit as decisions and header fields show it: with the numbers that are in force.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The limit that requests are charged to.
    charged: Limit,
    name: Box<str>,
    /// The limit for a capacity, and for the most at once.
    latest: (Amount, u64, Limit),
}

/// A capacity such as 36.5 a second is shown exactly, as 73 in 2 s, if that takes no more than this many periods. Others
/// are rounded down.
const MOST_PERIODS: u64 = 60;

impl Shown {
    pub(super) fn new(charged: Limit, name: &str) -> Self {
        Self { charged, name: name.into(), latest: (Amount::ZERO, 0, charged) }
    }

    /// What to show while so much may be used, and so much at once. Without capacity, the numbers from before.
    pub(super) fn of(&mut self, capacity: Amount, burst: u64) -> Limit {
        let (before, burst_before, limit) = self.latest;
        if (before, burst_before) == (capacity, burst) || capacity.is_zero() {
            return limit;
        }
        let limit = self.make(capacity, burst).unwrap_or(self.charged);
        self.latest = (capacity, burst, limit);
        limit
    }

    fn make(&self, capacity: Amount, burst: u64) -> Option<Limit> {
        let limit = match self.charged.period() {
            None => Limit::try_concurrent(capacity.as_units().max(1)).ok()?,
            Some(period) => {
                let (count, periods) = ratio(capacity);
                let period = Duration::from_millis(
                    u64::try_from(period.as_millis()).ok()?.checked_mul(periods)?,
                );
                let bucket = Limit::try_per(count, period).ok()?;
                bucket.try_burst(burst).unwrap_or(bucket)
            }
        };
        limit.try_named(&self.name).ok()
    }
}

/// The capacity as a count in a number of periods.
fn ratio(capacity: Amount) -> (u64, u64) {
    let (millionths, unit) = (capacity.millionths(), Amount::units(1).millionths());
    let divisor = gcd(millionths, unit);
    match (millionths / divisor, unit / divisor) {
        (count, periods) if periods <= MOST_PERIODS => (count, periods),
        _ if millionths >= unit => (millionths / unit, 1),
        // One in as many periods as that takes.
        _ => (1, unit.div_ceil(millionths)),
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_shown_exactly_or_rounded_down() {
        let charged = Limit::per_second(1).named("db");
        let mut shown = Shown::new(charged, "db");
        let mut of =
            |millionths, burst| shown.of(Amount::from_millionths(millionths), burst).to_string();
        assert_eq!(of(10_000_000, 10), "10/second named \"db\"");
        assert_eq!(of(36_500_000, 36), "73 per 2 seconds burst 36 named \"db\"");
        assert_eq!(of(33_333_333, 33), "33/second named \"db\"");
        assert_eq!(of(2_000_000_000_000, 2_000_000), "2000000/second named \"db\"");
        assert_eq!(of(300_000, 1), "3 per 10 seconds burst 1 named \"db\"");
        assert_eq!(of(12_345, 1), "1 per 82 seconds named \"db\"");
        // Without capacity there is nothing to show: the last numbers stay.
        assert_eq!(of(0, 1), "1 per 82 seconds named \"db\"");
    }

    #[test]
    fn places_are_shown_in_whole_numbers() {
        let mut shown = Shown::new(Limit::concurrent(9).named("workers"), "workers");
        let mut of = |millionths| shown.of(Amount::from_millionths(millionths), 0).to_string();
        assert_eq!(of(7_900_000), "concurrent 7 named \"workers\"");
        assert_eq!(of(500_000), "concurrent 1 named \"workers\"");
    }
}
