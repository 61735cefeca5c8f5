/// What a throttle's costs are: it says how they are measured, and a capacity of the same kind drains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Each request costs 1.
    Requests,
    /// Microseconds of polling the handler and its body.
    PollTime,
    /// Microseconds for which a request holds its place: from its start to the end of its body.
    PlaceTime,
    /// What handlers report as [`Cost`](sluicegate_core::Cost).
    Reported,
}

/// What is known of a request that has ended, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    /// For how long it was polled.
    pub(super) polled: u64,
    /// For how long it held its place.
    pub(super) held: u64,
    /// The cost that its handler reported.
    pub(super) reported: Option<u64>,
}

impl Unit {
    /// What a request has cost; `None` if that says nothing about others.
    pub(super) fn cost(self, measured: Measurement, reported: Reported) -> Option<u64> {
        match self {
            Self::Requests => None,
            Self::Reported => measured.reported,
            Self::PlaceTime => Some(measured.held),
            Self::PollTime => Some(match (reported, measured.reported) {
                (Reported::Instead, Some(reported)) => reported,
                (Reported::OnTop, Some(reported)) => measured.polled.saturating_add(reported),
                (_, None) => measured.polled,
            }),
        }
    }
}

/// What a [`Cost`](sluicegate_core::Cost) in a response means where the capacity is a
/// [share of the processors](super::ThrottleBuilder::cpu).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reported {
    /// It is the cost; the measured time is not counted.
    #[default]
    Instead,
    /// It is added to the measured time, such as the microseconds that a database worked.
    OnTop,
}
