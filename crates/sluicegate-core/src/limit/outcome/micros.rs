//! Times that an outcome says in one number.

/// Nobody can tell when. Every time is less: it is exact in a double.
pub(super) const UNKNOWN: u64 = u64::MAX - 1;

/// However long it waits: the cost is more than a limit ever allows.
pub(super) const NEVER: u64 = u64::MAX;
