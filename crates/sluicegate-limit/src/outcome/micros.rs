//! Times that an outcome keeps as one number.

/// The time is unknown. Every real time is smaller, and this number is exact in a double.
pub(super) const UNKNOWN: u64 = u64::MAX - 1;

/// Never: the cost is more than a limit ever admits.
pub(super) const NEVER: u64 = u64::MAX;
