//! Whether what a server told can still be believed.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Servers are told apart by so many numbers: in a cluster of more, some share one, and what one tells is then
/// forgotten with what the other told.
const PLACES: usize = 256;

/// A number for each server, which changes when it may have begun anew: when a connection to it is made, or when
/// another server takes its place.
#[derive(Debug)]
pub(crate) struct Epochs {
    epochs: [AtomicU32; PLACES],
    next: AtomicUsize,
}

/// When a server told something: worth nothing once its number has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    place: u32,
    epoch: u32,
}

impl Default for Epochs {
    fn default() -> Self {
        Self { epochs: [const { AtomicU32::new(0) }; PLACES], next: AtomicUsize::new(0) }
    }
}

impl Epochs {
    /// A number for one more server.
    pub(crate) fn place(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % PLACES
    }

    pub(crate) fn advance(&self, place: usize) {
        self.epochs[place].fetch_add(1, Ordering::Release);
    }

    pub(crate) fn seen(&self, place: usize) -> Seen {
        Seen { place: place as u32, epoch: self.epochs[place].load(Ordering::Acquire) }
    }

    #[inline]
    pub(super) fn is_current(&self, seen: Seen) -> bool {
        self.epochs[seen.place as usize % PLACES].load(Ordering::Acquire) == seen.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_server_told_outlasts_the_troubles_of_another() {
        let epochs = Epochs::default();
        let (sick, well) = (epochs.place(), epochs.place());
        let (told_by_sick, told_by_well) = (epochs.seen(sick), epochs.seen(well));
        epochs.advance(sick);
        assert!(!epochs.is_current(told_by_sick));
        assert!(epochs.is_current(told_by_well));
        assert!(epochs.is_current(epochs.seen(sick)));
    }
}
