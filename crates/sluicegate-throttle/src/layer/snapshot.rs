use crate::scheduler::Counts;

/// What a throttle is doing at this moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// The queue of each class, the most critical first.
    pub classes: Vec<ClassSnapshot>,
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
    /// How many requests were started, shed or cancelled so far.
    pub counts: Counts,
    /// How many requests had a class, a deadline or a key that could not be read: the default was used.
    pub unreadable: u64,
    /// The predicted cost of all requests that were measured.
    pub predicted_cost: u64,
    /// The measured cost of those.
    pub actual_cost: u64,
}

/// The queue of one class.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClassSnapshot {
    /// The name of the class.
    pub name: String,
    /// How many of its requests are queued.
    pub requests: usize,
    /// The cost of those together.
    pub cost: u64,
}
