//! Wakes the thread that reads the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The pause in events after which the file is read. An editor writes, renames and sets permissions faster.
const QUIET: Duration = Duration::from_millis(50);

/// The longest wait for such a pause, in a directory with constant activity.
const LONGEST: Duration = Duration::from_secs(1);

/// The time between attempts to watch a directory.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// How long a text must stay the same before it takes effect. A program that writes a file in place pauses for less
/// between two writes.
pub(super) const STABLE: Duration = Duration::from_millis(200);

/// The longest wait for a program that has written to the file and not closed it yet.
const OPEN: Duration = Duration::from_secs(10);

/// Wakes the thread. Several notifications before the thread waits count as one, so nothing piles up behind a slow
/// listener.
#[derive(Clone)]
pub(super) struct Notifier {
    sender: SyncSender<()>,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicBool>,
}

/// The thread's side of the notifier.
pub(super) struct Notifications {
    receiver: Receiver<()>,
    stop: Arc<AtomicBool>,
    /// Whether a program has written to the file and not closed it yet, on systems that report it.
    written: Arc<AtomicBool>,
}

impl Notifier {
    pub(super) fn new() -> (Self, Notifications) {
        let (sender, receiver) = sync_channel(1);
        let [stop, written] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let notifier = Self { sender, stop: Arc::clone(&stop), written: Arc::clone(&written) };
        (notifier, Notifications { receiver, stop, written })
    }

    /// Sets whether a program has written to the file and not closed it yet.
    pub(super) fn written(&self, written: bool) {
        self.written.store(written, Ordering::Release);
    }

    pub(super) fn notify(&self) {
        // It was notified already, or the thread has ended.
        let _ = self.sender.try_send(());
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.notify();
    }
}

impl Notifications {
    /// Waits for a notification, at most for this time, and for the end of the burst of events. Returns whether to go on.
    pub(super) fn wait(&self, most: Option<Duration>) -> bool {
        let first = match most {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(most) => self.receiver.recv_timeout(most),
        };
        match first {
            Ok(()) => self.quiet(Instant::now()),
            Err(RecvTimeoutError::Timeout) => self.goes_on(),
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Waits for a pause in events while no program writes.
    fn quiet(&self, since: Instant) -> bool {
        while self.goes_on() {
            let open = self.written.load(Ordering::Acquire);
            let (pause, most) = if open { (OPEN, OPEN) } else { (QUIET, LONGEST) };
            let was_notified = self.receiver.recv_timeout(pause).is_ok();
            if !was_notified || since.elapsed() >= most {
                break;
            }
        }
        self.goes_on()
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_burst_of_changes_is_one() {
        let (notifier, notifications) = Notifier::new();
        (0..1_000).for_each(|_| notifier.notify());
        assert!(notifications.wait(None));
        assert!(notifications.receiver.try_recv().is_err());
    }

    #[test]
    fn a_stop_is_noticed_within_a_burst_and_in_silence() {
        let (notifier, notifications) = Notifier::new();
        notifier.notify();
        notifier.stop();
        assert!(!notifications.wait(None));
        let (notifier, notifications) = Notifier::new();
        notifier.stop();
        assert!(!notifications.wait(Some(AGAIN)));
        let (notifier, notifications) = Notifier::new();
        drop(notifier);
        assert!(!notifications.wait(None));
    }

    #[test]
    fn a_directory_that_is_never_quiet_is_looked_at_all_the_same() {
        let (notifier, notifications) = Notifier::new();
        let loud = notifier.clone();
        let done = Arc::new(AtomicBool::new(false));
        let never_quiet = Arc::clone(&done);
        let noise = thread::spawn(move || {
            while !never_quiet.load(Ordering::Relaxed) {
                loud.notify();
                thread::yield_now();
            }
        });
        assert!(notifications.wait(None));
        done.store(true, Ordering::Relaxed);
        noise.join().expect("it only notifies");
        drop(notifier);
    }

    #[test]
    fn a_writer_is_waited_for_until_it_closes_the_file() {
        let (notifier, notifications) = Notifier::new();
        let closed = Arc::new(AtomicBool::new(false));
        notifier.written(true);
        notifier.notify();
        let (writer, noted) = (notifier.clone(), Arc::clone(&closed));
        let writer = thread::spawn(move || {
            // More than one pause long, something else happens in the directory.
            let (_never, other) = sync_channel::<()>(1);
            for _ in 0..4 {
                let _ = other.recv_timeout(QUIET);
                writer.notify();
            }
            noted.store(true, Ordering::Release);
            writer.written(false);
            writer.notify();
        });
        assert!(notifications.wait(None));
        assert!(closed.load(Ordering::Acquire));
        writer.join().expect("it only notifies");
    }
}
