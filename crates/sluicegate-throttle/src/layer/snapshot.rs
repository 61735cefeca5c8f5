use std::time::Duration;

use crate::scheduler::Counts;

/// The present state of a throttle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// The name of the throttle.
    pub name: String,
    /// Each class, the most critical first.
    pub classes: Vec<ClassSnapshot>,
    /// How many classes are admitted at present, the most critical first: see
    /// [`Scheduler::admitted_classes`](crate::scheduler::Scheduler::admitted_classes).
    pub admitted_classes: usize,
    /// How many requests are queued.
    pub queued: usize,
    /// Their total cost.
    pub queued_cost: u64,
    /// The cost that the queue holds.
    pub queue_bound: u64,
    /// How many requests run.
    pub running: usize,
    /// How many may run at once; `None` where the capacity is a rate.
    pub limit: Option<usize>,
    /// The cost that is drained in a second; `None` where the capacity is work in flight.
    pub cost_per_second: Option<f64>,
    /// An adaptive limit's estimate of a request's time in an unloaded server. `None` while it is unknown, and if the
    /// capacity has no such estimate.
    pub baseline: Option<Duration>,
    /// Numbers of requests in all classes so far, by what happened to them.
    pub counts: Counts,
    /// How often something in a request could not be read so far.
    pub unreadable: UnreadCounts,
    /// The total predicted cost of all measured requests.
    pub predicted_cost: u64,
    /// Their total measured cost.
    pub actual_cost: u64,
    /// The sum of the absolute differences between predicted and measured cost.
    pub prediction_error: u64,
    /// Each partition of the work in flight.
    pub partitions: Vec<PartitionSnapshot>,
    /// Predicted and measured cost by key, the highest measured cost first. The first 64 keys are counted separately,
    /// and all others together.
    pub keys: Vec<KeySnapshot>,
}

/// One class of a throttle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClassSnapshot {
    /// The name of the class.
    pub name: String,
    /// How many of its requests are queued.
    pub requests: usize,
    /// Their total cost.
    pub cost: u64,
    /// Numbers of its requests so far, by what happened to them.
    pub counts: Counts,
    /// The waiting flows with the highest cost: at most ten.
    pub flows: Vec<FlowSnapshot>,
}

/// The queued requests of a flow.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FlowSnapshot {
    /// The flow's key, as [`show_keys`](super::ThrottleBuilder::show_keys) lets it be shown. `None` where keys are
    /// hidden, and for flows that share a queue.
    pub flow: Option<String>,
    /// How many of its requests wait.
    pub requests: usize,
    /// Their total cost.
    pub cost: u64,
}

/// Predicted and measured costs of the requests with a key.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The key, as [`show_keys`](super::ThrottleBuilder::show_keys) lets it be shown. `None` where keys are hidden, and
    /// for all keys after the first 64 together.
    pub key: Option<String>,
    /// How many requests were measured.
    pub requests: u64,
    /// Their total predicted cost.
    pub predicted_cost: u64,
    /// Their total measured cost.
    pub actual_cost: u64,
    /// The sum of the absolute differences between the two.
    pub error: u64,
}

/// A partition of the work in flight.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartitionSnapshot {
    /// The name of the partition.
    pub name: String,
    /// How many of its requests run.
    pub running: usize,
    /// How many of its requests wait.
    pub waiting: usize,
    /// How many of its requests may run, regardless of the other partitions.
    pub guaranteed: usize,
}

/// Numbers of requests with something that could not be read, so that the default was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadCounts {
    /// A class.
    pub classes: u64,
    /// A deadline.
    pub deadlines: u64,
    /// The key of a prediction or of a flow.
    pub keys: u64,
}

impl UnreadCounts {
    /// All of these together.
    pub const fn all(&self) -> u64 {
        self.classes + self.deadlines + self.keys
    }
}
