use std::time::Duration;

use crate::scheduler::Counts;

/// What a throttle is doing at this moment.
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
    /// The cost of those together.
    pub queued_cost: u64,
    /// The cost that the queue holds.
    pub queue_bound: u64,
    /// How many requests run.
    pub running: usize,
    /// How many may run at once; `None` where the capacity is a rate.
    pub limit: Option<usize>,
    /// The cost that is drained in a second; `None` where the capacity is work in flight.
    pub cost_per_second: Option<f64>,
    /// The time that an adaptive limit takes for that of an unloaded server; `None` as long as it is unknown, and
    /// where the capacity has none.
    pub baseline: Option<Duration>,
    /// How many requests went which way so far, in all classes.
    pub counts: Counts,
    /// What could not be read of requests so far.
    pub unreadable: UnreadCounts,
    /// The predicted cost of all requests that were measured.
    pub predicted_cost: u64,
    /// The measured cost of those.
    pub actual_cost: u64,
    /// The differences of predicted and measured cost, added up whether too much or too little was predicted.
    pub prediction_error: u64,
    /// Each partition of the work in flight.
    pub partitions: Vec<PartitionSnapshot>,
    /// Predicted and measured cost by key: the first 64 keys that came, and then all others together; those with the
    /// highest measured cost first.
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
    /// The cost of those together.
    pub cost: u64,
    /// How many of its requests went which way so far.
    pub counts: Counts,
    /// The flows that wait with the highest cost: at most ten.
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
    /// The cost of those together.
    pub cost: u64,
}

/// Predicted and measured costs of the requests with a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The key, as [`show_keys`](super::ThrottleBuilder::show_keys) lets it be shown. `None` where keys are hidden, and
    /// for all keys after the first 64 together.
    pub key: Option<String>,
    /// How many requests were measured.
    pub requests: u64,
    /// The predicted cost of those.
    pub predicted_cost: u64,
    /// The measured cost of those.
    pub actual_cost: u64,
    /// The differences of the two, added up whether too much or too little was predicted.
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
    /// How many may run whatever the other partitions do.
    pub guaranteed: usize,
}

/// How many requests had something that could not be read, so that the default was used.
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
