//! Room for the bodies of requests that are kept, because a rule counts their tokens.
//!
//! They are read before anything else is asked: the limits, the throttle, the number of requests of the application. So
//! their memory needs a bound of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluicegate::key::KeyBuf;

/// How many bytes of all bodies are kept at once: 64 bodies of the largest length by default, or thousands of usual ones.
/// A body that comes in pieces is joined in a buffer that may have twice its length. One in brotli or zstd is kept for its
/// estimate too, in buffers that may have three times its length and 160 KiB.
const ROOM: usize = 128 * 1024 * 1024;

/// There is room for as many bodies of the largest length, where the file allows longer ones.
const LONG: usize = 16;

/// The room for all bodies. Clones share it.
///
/// A client takes at most as much as is left: half of the room if it is alone, a third if there are two. So no client alone
/// keeps others out, and while few bodies are kept, nobody is refused. This is the dynamic threshold of A. K. Choudhury and
/// E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998), with a factor of 1.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Mutex<Shares>>);

#[derive(Debug)]
struct Shares {
    left: usize,
    /// What each client has taken, by the key of its address. Clients that have nothing are not in it.
    taken: HashMap<KeyBuf, usize>,
}

/// What one body takes of the room. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    room: Room,
    client: KeyBuf,
    bytes: AtomicUsize,
    is_refused: AtomicBool,
}

impl Room {
    /// Room for bodies of at most `longest` bytes each.
    pub(crate) fn new(longest: usize) -> Self {
        Self::of(ROOM.max(LONG.saturating_mul(longest)))
    }

    fn of(left: usize) -> Self {
        Self(Arc::new(Mutex::new(Shares { left, taken: HashMap::new() })))
    }

    /// A body of this client, of which nothing has come.
    pub(crate) fn begin(&self, client: KeyBuf) -> Arc<BodyPermit> {
        let (bytes, is_refused) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(BodyPermit { room: self.clone(), client, bytes, is_refused })
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyPermit {
    /// Takes room for bytes that have come. Returns whether there is any. Nobody waits for it: those who wait for each
    /// other with a part of the room would wait for ever.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        let mut shares = self.room.shares();
        let own = shares.taken.get(&self.client).map_or(bytes, |taken| taken + bytes);
        let fits = own <= shares.left;
        if fits {
            shares.left -= bytes;
            shares.taken.insert(self.client, own);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        fits
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
        let bytes = *self.bytes.get_mut();
        let mut shares = self.room.shares();
        shares.left += bytes;
        if let Entry::Occupied(mut taken) = shares.taken.entry(self.client) {
            *taken.get_mut() -= bytes;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: usize) -> KeyBuf {
        let mut key = KeyBuf::new();
        key.push(&number.to_le_bytes());
        key
    }

    #[test]
    fn room_is_taken_by_what_has_come_and_given_back() {
        let room = Room::of(10);
        let (one, other) = (room.begin(client(1)), room.begin(client(2)));
        assert!(one.take(3) && other.take(3) && other.take(0));
        assert_eq!((one.bytes(), one.is_refused()), (3, false));
        assert!(!other.take(2));
        assert_eq!((other.bytes(), other.is_refused()), (3, true));
        drop(one);
        assert!(room.begin(client(3)).take(7));
        drop(other);
        assert!(room.begin(client(2)).take(10));
        assert!(room.shares().taken.is_empty());
    }

    #[test]
    fn no_client_alone_keeps_another_out() {
        let room = Room::new(2 * 1024 * 1024);
        let greedy: Vec<_> = (0..ROOM / 1024).map(|_| room.begin(client(1))).collect();
        let got = greedy.iter().filter(|body| body.take(1024)).count();
        assert_eq!(got * 1024, ROOM / 2);
        let other = room.begin(client(2));
        assert!(other.take(2 * 1024 * 1024));
        // Several connections are no way to more.
        assert!(!room.begin(client(1)).take(1));
        drop(greedy);
        assert!(room.begin(client(1)).take(2 * 1024 * 1024));
    }

    #[test]
    fn there_is_room_for_some_bodies_of_any_length() {
        for longest in [1024, 2 * 1024 * 1024, 64 * 1024 * 1024] {
            let room = Room::new(longest);
            let bodies: Vec<_> = (0..LONG).map(|number| room.begin(client(number))).collect();
            assert!(bodies.iter().all(|body| body.take(longest)), "{longest}");
        }
    }
}
