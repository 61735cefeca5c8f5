/// The queue of one class and partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) rank: usize,
    /// Its place in the list of partitions.
    pub(super) partition: usize,
}
