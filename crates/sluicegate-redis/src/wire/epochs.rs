//! When answers of a server stop to hold, because it may have restarted empty.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How many servers are told apart. In a larger cluster some share an epoch, so that the answers of one are forgotten
/// together with those of another.
const SERVERS: usize = 256;

/// The epoch of each server: a number that changes when the server may have restarted empty, which is when a connection
/// to it is made, or when another server takes over its slots.
#[derive(Debug)]
pub(crate) struct Epochs {
    epochs: [AtomicU32; SERVERS],
    next: AtomicUsize,
}

/// The epoch in which a server answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServerEpoch {
    server: u32,
    epoch: u32,
}

impl Default for Epochs {
    fn default() -> Self {
        Self { epochs: [const { AtomicU32::new(0) }; SERVERS], next: AtomicUsize::new(0) }
    }
}

impl Epochs {
    /// The index of a new server.
    pub(crate) fn add_server(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % SERVERS
    }

    pub(crate) fn advance(&self, server: usize) {
        self.epochs[server].fetch_add(1, Ordering::Release);
    }

    pub(crate) fn current(&self, server: usize) -> ServerEpoch {
        ServerEpoch { server: server as u32, epoch: self.epochs[server].load(Ordering::Acquire) }
    }

    #[inline]
    pub(crate) fn is_current(&self, answered: ServerEpoch) -> bool {
        self.epochs[answered.server as usize % SERVERS].load(Ordering::Acquire) == answered.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_one_server_survive_the_failure_of_another() {
        let epochs = Epochs::default();
        let (sick, well) = (epochs.add_server(), epochs.add_server());
        let (told_by_sick, told_by_well) = (epochs.current(sick), epochs.current(well));
        epochs.advance(sick);
        assert!(!epochs.is_current(told_by_sick));
        assert!(epochs.is_current(told_by_well));
        assert!(epochs.is_current(epochs.current(sick)));
    }
}
