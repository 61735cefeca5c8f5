//! Numbers that are exact in `u64` here and in the doubles of Redis' Lua alike.
//!
//! Ticks get coarser instead of limits being refused. If a burst times a period would exceed 2^52 in
//! microseconds, the limit is tried in milliseconds and then in seconds before it is an error. The rate
//! stays exact; only the moment of admission is on the coarser grid.

use core::time::Duration;

/// Every intermediate of the arithmetic stays below this, so a double holds it exactly.
pub(crate) const EXACT: u64 = 1 << 53;

/// Lengths of a tick to try, in microseconds: the finest whose products stay exact is taken.
pub(crate) const TICKS: [u64; 3] = [1, 1_000, 1_000_000];

pub(crate) const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Microseconds from `now` to `ticks` ticks after the tick that `now` is in; 0 for 0 ticks.
pub(crate) const fn micros_until(now: u64, ticks: u64, tick: u64) -> u64 {
    match (ticks, tick) {
        (0, _) => 0,
        (_, 1) => bounded(ticks),
        _ => bounded(ticks.saturating_mul(tick)) - now % tick,
    }
}

/// A time in microseconds, or the largest number.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A debt counted in units of `from` to one token, in units of `to`: whole tokens stay whole, and what is
/// left of one is rounded up. `None` where that is far beyond what any limit admits.
pub(crate) fn rescaled(debt: u64, from: u64, to: u64) -> Option<u64> {
    let wide = u128::from;
    let whole = wide(debt / from) * wide(to);
    let rest = (wide(debt % from) * wide(to)).div_ceil(wide(from));
    u64::try_from(whole + rest).ok()
}

/// A number, or the greatest that is exact: a moment that is centuries away is as good as any later.
pub const fn bounded(number: u64) -> u64 {
    if number < EXACT { number } else { EXACT - 1 }
}

/// How much of `length` is left that began at `since`. A clock that stepped back cannot make it longer than it was.
pub(crate) fn time_left([since, length]: [u64; 2], now: u64) -> u64 {
    length.saturating_sub(now.saturating_sub(since))
}

/// The earliest moment that a request may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Earliest {
    /// In this many microseconds from now.
    At(u64),
    /// At an unknown time, when something that is held is given back. It is at least this many microseconds from now.
    Unknown(u64),
    /// The cost is more than the limit ever allows.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_where_its_last_tick_begins() {
        assert_eq!(micros_until(1_999, 0, 1_000), 0);
        assert_eq!(micros_until(1_999, 1, 1_000), 1);
        assert_eq!(micros_until(2_000, 1, 1_000), 1_000);
        assert_eq!(micros_until(2_001, 3, 1_000), 2_999);
        assert_eq!(micros_until(2_001, 3, 1), 3);
    }

    #[test]
    fn a_wait_of_centuries_stays_exact() {
        assert_eq!(micros_until(5, u64::MAX, 1), EXACT - 1);
        assert!(micros_until(5, u64::MAX / 2, 1_000_000) < EXACT);
    }

    #[test]
    fn the_greatest_common_divisor_reduces() {
        assert_eq!(gcd(700_000_000, 1_000_000), 1_000_000);
        assert_eq!(gcd(7, 86_400_000_000), 1);
        assert_eq!(gcd(5, 0), 5);
    }
}
