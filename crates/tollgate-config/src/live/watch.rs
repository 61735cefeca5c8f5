use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};

use super::directories::directories;
use super::event::Event;
use super::shared::Shared;

/// How long nothing has to happen before the file is read: an editor writes, renames and sets rights
/// within less.
const QUIET: Duration = Duration::from_millis(50);

/// How long that is waited for, in a directory in which something happens all the time.
const LONGEST: Duration = Duration::from_secs(1);

/// How long after a directory could not be watched it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A file that is being watched, until this is dropped: see [`Live::watch`](super::Live::watch).
///
/// No event comes after that.
#[must_use = "dropped, it stops watching"]
pub struct Watching {
    send: Sender<Sign>,
    thread: Option<JoinHandle<()>>,
}

/// Why a file cannot be watched.
#[derive(Debug)]
pub struct WatchError {
    /// The library that watches is not part of this crate's promises.
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What the thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Something happened in one of the directories.
    Change,
    Stop,
}

impl Watching {
    pub(super) fn begin(shared: &Arc<Shared>) -> Result<Self, WatchError> {
        let Some(file) = shared.file() else { return Err(WatchError { source: None }) };
        let (send, signs) = channel();
        let mut directories = Directories::new(send.clone()).map_err(WatchError::new)?;
        directories.watch(file.path()).map_err(WatchError::new)?;
        // What happened between the reading and this moment is not to be missed.
        send.send(Sign::Change).map_err(WatchError::new)?;
        let thread = Thread { shared: Arc::clone(shared), directories, signs };
        let thread = thread::Builder::new()
            .name("tollgate-policies".to_owned())
            .spawn(move || thread.run())
            .map_err(WatchError::new)?;
        Ok(Self { send, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Whoever is no longer there has stopped already.
        let _ = self.send.send(Sign::Stop);
        if let Some(thread) = self.thread.take() {
            // A listener that drops this runs on the thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

struct Thread {
    shared: Arc<Shared>,
    directories: Directories,
    signs: Receiver<Sign>,
}

impl Thread {
    fn run(mut self) {
        let mut watched = true;
        while wait(&self.signs, watched) == Sign::Change {
            watched = self.watch(watched);
            self.shared.reload_if_changed();
        }
    }

    /// Watches the directories that count by now, before the file is read: what changes afterwards is
    /// seen. Tells when that fails, once.
    fn watch(&mut self, watched: bool) -> bool {
        let Some(file) = self.shared.file() else { return true };
        let failed = self.directories.watch(file.path()).err();
        if let (true, Some(error)) = (watched, &failed) {
            self.shared.tell(&Event::Unwatched(error.to_string()));
        }
        failed.is_none()
    }
}

/// Waits for a sign, and for the end of the burst that it may be the beginning of; not for ever if not
/// all is `watched`.
fn wait(signs: &Receiver<Sign>, watched: bool) -> Sign {
    let first = if watched {
        signs.recv().map_err(|_| RecvTimeoutError::Disconnected)
    } else {
        signs.recv_timeout(AGAIN)
    };
    match first {
        Ok(Sign::Change) => quiet(signs, Instant::now() + LONGEST),
        Err(RecvTimeoutError::Timeout) => Sign::Change,
        Ok(Sign::Stop) | Err(RecvTimeoutError::Disconnected) => Sign::Stop,
    }
}

/// Waits until nothing has happened for a while.
fn quiet(signs: &Receiver<Sign>, until: Instant) -> Sign {
    loop {
        match signs.recv_timeout(QUIET) {
            Ok(Sign::Change) if Instant::now() < until => {}
            Ok(Sign::Change) | Err(RecvTimeoutError::Timeout) => return Sign::Change,
            Ok(Sign::Stop) | Err(RecvTimeoutError::Disconnected) => return Sign::Stop,
        }
    }
}

/// The directories that are watched.
struct Directories {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl Directories {
    fn new(send: Sender<Sign>) -> notify::Result<Self> {
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may stand for events that were lost.
            if event.is_err() || event.is_ok_and(|event| may_change(event.kind)) {
                // Nobody may be there any more.
                let _ = send.send(Sign::Change);
            }
        })?;
        Ok(Self { watcher, watched: BTreeSet::new() })
    }

    /// Watches all directories that count for `path`, and no others. Each is watched anew: a directory
    /// may be another one by the same name.
    fn watch(&mut self, path: &Path) -> notify::Result<()> {
        for directory in std::mem::take(&mut self.watched) {
            // It may be gone, and its watch with it.
            let _ = self.watcher.unwatch(&directory);
        }
        for directory in directories(path) {
            self.watcher.watch(&directory, RecursiveMode::NonRecursive)?;
            self.watched.insert(directory);
        }
        Ok(())
    }
}

/// Whether a file may be another one after such an event. Reading is none: it would be answered by
/// reading.
fn may_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

impl WatchError {
    fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)) }
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Some(_) => "the file cannot be watched",
            None => "these policies were not read from a file",
        })
    }
}

impl Error for WatchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watching")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_changes_is_one() {
        let (send, signs) = channel();
        for _ in 0..1_000 {
            send.send(Sign::Change).expect("the receiver is there");
        }
        assert_eq!(wait(&signs, true), Sign::Change);
        assert!(signs.try_recv().is_err());
    }

    #[test]
    fn a_stop_within_a_burst_stops() {
        let (send, signs) = channel();
        for sign in [Sign::Change, Sign::Change, Sign::Stop] {
            send.send(sign).expect("the receiver is there");
        }
        assert_eq!(wait(&signs, true), Sign::Stop);
        drop(send);
        assert_eq!(wait(&signs, true), Sign::Stop);
    }

    #[test]
    fn a_directory_that_is_never_quiet_is_looked_at_all_the_same() {
        let (send, signs) = channel();
        for _ in 0..3 {
            send.send(Sign::Change).expect("the receiver is there");
        }
        assert_eq!(quiet(&signs, Instant::now()), Sign::Change);
        assert_eq!(signs.try_iter().count(), 2);
    }

    #[test]
    fn a_file_that_is_only_read_has_not_changed() {
        assert!(!may_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(may_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(may_change(EventKind::Any));
    }
}
