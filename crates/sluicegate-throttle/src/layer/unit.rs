/// The unit of a throttle's costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Each request costs 1.
    Requests,
    /// Microseconds of polling the handler and its body.
    PollTime,
    /// What handlers report as [`Cost`](sluicegate_core::Cost).
    Reported,
}

/// What a [`Cost`](sluicegate_core::Cost) in a response means if time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reported {
    /// It is the cost; the measured time is not counted.
    #[default]
    Instead,
    /// It is added to the measured time, such as the microseconds that a database worked.
    OnTop,
}
