//! Room for the bodies of requests that are kept, because a rule counts their tokens.
//!
//! They are read before anything else is asked: the limits, the throttle, the number of requests of the application. So
//! their memory needs a bound of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Semaphore;

/// How many bytes of all bodies are kept at once: 64 bodies of the largest length by default, or thousands of usual ones.
/// A body that comes in pieces is joined in a buffer that may have twice its length. One in brotli or zstd is kept for its
/// estimate too, in buffers that may have three times its length and 160 KiB.
const ROOM: usize = 128 * 1024 * 1024;

/// There is room for as many bodies of the largest length, where the file allows longer ones.
const LONG: usize = 16;

/// The room for all bodies. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// What one body takes of the room. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    room: Room,
    bytes: AtomicUsize,
    is_refused: AtomicBool,
}

impl Room {
    /// Room for bodies of at most `longest` bytes each.
    pub(crate) fn new(longest: usize) -> Self {
        let bytes = ROOM.max(LONG.saturating_mul(longest));
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// A body of which nothing has come.
    pub(crate) fn begin(&self) -> Arc<BodyPermit> {
        let (bytes, is_refused) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(BodyPermit { room: self.clone(), bytes, is_refused })
    }
}

impl BodyPermit {
    /// Takes room for bytes that have come. Returns whether there is any. Nobody waits for it: those who wait for each
    /// other with a part of the room would wait for ever.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let taken = u32::try_from(bytes).ok().and_then(|n| self.room.0.try_acquire_many(n).ok());
        match taken {
            Some(taken) => {
                taken.forget();
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                true
            }
            None => {
                self.is_refused.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// How many bytes have come.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there was no room for all of the body.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.room.0.add_permits(*self.bytes.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_by_what_has_come_and_given_back() {
        let room = Room(Arc::new(Semaphore::new(10)));
        let (one, other) = (room.begin(), room.begin());
        assert!(one.take(4) && other.take(4) && one.take(2));
        assert_eq!((one.bytes(), one.is_refused()), (6, false));
        assert!(!other.take(1));
        assert_eq!((other.bytes(), other.is_refused()), (4, true));
        drop(one);
        assert!(room.begin().take(6));
        drop(other);
        assert!(room.begin().take(10));
    }

    #[test]
    fn there_is_room_for_some_bodies_of_any_length() {
        for longest in [1024, 2 * 1024 * 1024, 64 * 1024 * 1024] {
            let room = Room::new(longest);
            let bodies: Vec<_> = (0..LONG).map(|_| room.begin()).collect();
            assert!(bodies.iter().all(|body| body.take(longest)), "{longest}");
        }
    }
}
