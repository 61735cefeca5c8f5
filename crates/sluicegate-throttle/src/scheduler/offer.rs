use crate::class::Class;

/// A request that asks to be started.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// How critical it is.
    pub class: Class,
    /// The flow of the request. Requests of one class are served fairly between flows. If clients can choose the key of
    /// their flow, pass a hash of it under a secret seed.
    pub flow: u64,
    /// What it is expected to cost; counted as at least 1.
    pub cost: u64,
    /// When its client gives up, in microseconds on the clock that `now` is read from.
    pub deadline: Option<u64>,
    /// Its [partition](super::SchedulerBuilder::partitions), counted from 0; `None` for no partition.
    pub partition: Option<u8>,
    /// The key by which it is learnt how long requests run, such as a hash of the method and the route under a secret
    /// seed. A request that would run past its deadline is refused. How long it would run is learnt from the last
    /// requests with its key, for each cost; for requests without a key, from all requests together.
    pub key: Option<u64>,
}
