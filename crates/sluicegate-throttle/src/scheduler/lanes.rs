use super::class_queue::{ClassQueue, QueuedFlow};
use super::codel::Codel;
use super::offer::{Index, Lane};
use super::slab::Slab;

/// The queues of every class and partition, the most critical class first.
#[derive(Debug)]
pub(super) struct Lanes {
    queues: Box<[ClassQueue]>,
    classes: usize,
    partitions: usize,
}

impl Lanes {
    pub(super) fn new(
        classes: usize,
        partitions: usize,
        flow_queues: u16,
        codel: Option<&Codel>,
    ) -> Self {
        let queue = |_| ClassQueue::new(flow_queues, codel.cloned());
        Self { queues: (0..classes * partitions).map(queue).collect(), classes, partitions }
    }

    /// How many classes there are.
    pub(super) const fn classes(&self) -> usize {
        self.classes
    }

    /// Queues for the flows of each class.
    pub(super) fn flow_queues(&self) -> usize {
        self.queues[0].flow_queues()
    }

    pub(super) fn get(&self, lane: Lane) -> &ClassQueue {
        &self.queues[lane.rank * self.partitions + lane.partition]
    }

    pub(super) fn get_mut(&mut self, lane: Lane) -> &mut ClassQueue {
        &mut self.queues[lane.rank * self.partitions + lane.partition]
    }

    /// All queues of a class.
    pub(super) fn of(&self, rank: usize) -> &[ClassQueue] {
        &self.queues[rank * self.partitions..][..self.partitions]
    }

    /// All queues of the classes from `rank` on down.
    pub(super) fn from(&self, rank: usize) -> &[ClassQueue] {
        &self.queues[rank * self.partitions..]
    }

    /// All queues of the classes down to `rank`.
    pub(super) fn down_to(&self, rank: usize) -> &[ClassQueue] {
        &self.queues[..(rank + 1) * self.partitions]
    }

    pub(super) fn all(&self) -> &[ClassQueue] {
        &self.queues
    }

    pub(super) fn all_mut(&mut self) -> &mut [ClassQueue] {
        &mut self.queues
    }

    pub(super) fn has_waiting(&self, rank: usize) -> bool {
        self.of(rank).iter().any(|queue| queue.len > 0)
    }

    /// The partition of a class whose oldest request has waited the longest.
    pub(super) fn longest_waiting(&self, rank: usize, slab: &Slab) -> Option<usize> {
        if self.partitions == 1 {
            return Some(0);
        }
        let oldest = |at: &usize| {
            let queue = &self.of(rank)[*at];
            queue.ages.oldest.map(|oldest| slab.entry(oldest).since)
        };
        (0..self.partitions)
            .filter_map(|at| oldest(&at).map(|since| (since, at)))
            .min()
            .map(|(_, at)| at)
    }

    /// The flows of a class that wait, in no order.
    pub(super) fn flows(&self, rank: usize) -> impl Iterator<Item = QueuedFlow> + '_ {
        self.of(rank).iter().flat_map(ClassQueue::flows)
    }

    /// A list of the oldest request of each partition of a class.
    pub(super) fn oldest(&self, rank: usize) -> impl Iterator<Item = Index> + '_ {
        self.of(rank).iter().filter_map(|queue| queue.ages.oldest)
    }
}
