use std::time::Duration;

use sluicegate_core::Decision;

use super::unit::Unit;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Whether the request exceeds a limit.
    pub is_over: bool,
    /// The status of each descriptor, in order.
    pub statuses: Vec<Status>,
    /// Which descriptors meet a quota that is spent. `None` if none meets a quota.
    pub spent_quotas: Option<Vec<usize>>,
    /// The decision, from which header fields are made.
    pub decision: Decision,
}

impl Answer {
    /// The status of the limit with the least left, of one that refuses if there is one.
    pub fn tightest(&self) -> Option<&Status> {
        let limited = self.statuses.iter().filter(|status| status.limit.is_some());
        limited.min_by_key(|status| (!status.is_over, status.remaining))
    }
}

/// The status of one descriptor. The default is that of a descriptor without a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it refuses the request.
    pub is_over: bool,
    /// Whether the limit would refuse the request, though it is a shadow, a quota, or in a service that only watches.
    pub would_be_over: bool,
    /// The limit. `None` if the descriptor meets none.
    pub limit: Option<CurrentLimit>,
    /// What is left in this window; `u32::MAX` where the file says `unlimited`, and 0 without a limit.
    pub remaining: u32,
    /// How long until the window ends.
    pub until_reset: Option<Duration>,
}

/// The limit that a descriptor meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentLimit {
    /// How much it allows.
    pub count: u32,
    /// In which unit.
    pub unit: Unit,
    /// Its name in the file, or nothing.
    pub name: Box<str>,
}
