//! How the thread that looks at a file is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long nothing has to happen before the file is read: an editor writes, renames and sets rights
/// within less.
const QUIET: Duration = Duration::from_millis(50);

/// How long that is waited for, in a directory in which something happens all the time.
const LONGEST: Duration = Duration::from_secs(1);

/// How long after a directory could not be watched it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What the thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Something may have changed in one of the directories.
    Look,
    Stop,
}

/// Wakes the thread. However often it is rung before somebody listens, that is once: nothing piles up
/// behind a listener that takes its time.
#[derive(Clone)]
pub(super) struct Bell {
    ring: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

/// Hears the bell.
pub(super) struct Ear {
    rung: Receiver<()>,
    stop: Arc<AtomicBool>,
}

impl Bell {
    pub(super) fn new() -> (Self, Ear) {
        let (ring, rung) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        (Self { ring, stop: Arc::clone(&stop) }, Ear { rung, stop })
    }

    pub(super) fn ring(&self) {
        // It has been rung already, or nobody is there any more.
        let _ = self.ring.try_send(());
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
    }
}

impl Ear {
    /// Waits for the bell, and for the end of the burst that it may be the beginning of; not for ever if
    /// not all is `watched`.
    pub(super) fn wait(&self, watched: bool) -> Next {
        let first = if watched {
            self.rung.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            self.rung.recv_timeout(AGAIN)
        };
        match first {
            Ok(()) => self.quiet(Instant::now() + LONGEST),
            Err(RecvTimeoutError::Timeout) => self.next(),
            Err(RecvTimeoutError::Disconnected) => Next::Stop,
        }
    }

    /// Waits until nothing has happened for a while.
    fn quiet(&self, until: Instant) -> Next {
        while self.next() == Next::Look
            && self.rung.recv_timeout(QUIET).is_ok()
            && Instant::now() < until
        {}
        self.next()
    }

    fn next(&self) -> Next {
        if self.stop.load(Ordering::Acquire) { Next::Stop } else { Next::Look }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_burst_of_changes_is_one() {
        let (bell, ear) = Bell::new();
        (0..1_000).for_each(|_| bell.ring());
        assert_eq!(ear.wait(true), Next::Look);
        assert!(ear.rung.try_recv().is_err());
    }

    #[test]
    fn a_stop_is_heard_within_a_burst_and_in_silence() {
        let (bell, ear) = Bell::new();
        bell.ring();
        bell.stop();
        assert_eq!(ear.wait(true), Next::Stop);
        let (bell, ear) = Bell::new();
        bell.stop();
        assert_eq!(ear.wait(false), Next::Stop);
        let (bell, ear) = Bell::new();
        drop(bell);
        assert_eq!(ear.wait(true), Next::Stop);
    }

    #[test]
    fn a_directory_that_is_never_quiet_is_looked_at_all_the_same() {
        let (bell, ear) = Bell::new();
        let loud = bell.clone();
        let done = Arc::new(AtomicBool::new(false));
        let never_quiet = Arc::clone(&done);
        let noise = thread::spawn(move || {
            while !never_quiet.load(Ordering::Relaxed) {
                loud.ring();
                thread::yield_now();
            }
        });
        assert_eq!(ear.quiet(Instant::now()), Next::Look);
        done.store(true, Ordering::Relaxed);
        noise.join().expect("it only rings");
        drop(bell);
    }
}
