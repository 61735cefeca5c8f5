use super::ShedReason;

/// Numbers of requests since the scheduler was made, by what happened to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Offered: the sum of started, shed, cancelled and still queued requests.
    pub offered: u64,
    /// Started when they were offered, without waiting.
    pub at_once: u64,
    /// Put into the queue.
    pub queued: u64,
    /// Started, at once or out of the queue.
    pub started: u64,
    /// Refused, by reason, in the order of [`ShedReason::ALL`].
    pub shed: [u64; ShedReason::ALL.len()],
    /// Removed from the queue because the client had gone.
    pub cancelled: u64,
    /// Total cost of ended requests: the measured cost, or the predicted one if nothing was measured.
    pub cost: u64,
}

impl Counts {
    /// How many requests were refused for `reason`.
    pub const fn shed_for(&self, reason: ShedReason) -> u64 {
        self.shed[reason as usize]
    }

    /// How many requests were refused.
    pub fn all_shed(&self) -> u64 {
        self.shed.iter().sum()
    }

    /// How many requests were refused because of the load: all refused requests except those that would never fit.
    pub(super) fn shed_by_load(&self) -> u64 {
        self.all_shed() - self.shed_for(ShedReason::NeverFits)
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.offered += other.offered;
        self.at_once += other.at_once;
        self.queued += other.queued;
        self.started += other.started;
        self.shed.iter_mut().zip(other.shed).for_each(|(sum, shed)| *sum += shed);
        self.cancelled += other.cancelled;
        self.cost = self.cost.saturating_add(other.cost);
        self
    }
}
