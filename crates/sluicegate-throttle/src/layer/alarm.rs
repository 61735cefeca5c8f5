use std::task::Waker;

use tokio::runtime::Id;

/// When a drainer continues. An earlier moment wakes it.
#[derive(Debug)]
pub(super) struct Alarm {
    /// The runtime of the drainer. `None` for a thread of its own, where there is no runtime.
    pub(super) runtime: Option<Id>,
    pub(super) at: u64,
    pub(super) waker: Option<Waker>,
}
