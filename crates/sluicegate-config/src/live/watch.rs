//! Watches a policy file.
//!
//! An empty file is refused. A program that writes in place empties the file first, and the limits hold meanwhile.
//! The parsed document is asked whether it has `rules` (in Envoy's format, whether a descriptor has a `rate_limit`,
//! or the list is `[]`), never the text. A TOML or YAML file that was cut off between two rules is a valid file with
//! fewer rules, and nothing in it shows that. So a text is put in force only after it was read twice, and on Linux
//! after the program that wrote the file has closed it. Only regular files are read, opened without blocking, up to 8
//! MiB. The directory is watched and not the file. It is watched anew after each reading, because links may lead
//! elsewhere. Texts are compared, so an event only says that something may have changed.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};

use super::bell::{Bell, Ear, Next, Until};
use super::directories::directories;
use super::event::Event;
use super::file::Seen;
use super::glimpse::Glimpse;
use super::shared::Shared;

/// Watches a file until it is dropped; see [`Live::watch`](super::Live::watch).
///
/// There are no events after the drop.
#[must_use = "dropped, it stops watching"]
pub struct Watching {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

/// Why a file cannot be watched.
#[derive(Debug)]
pub struct WatchError {
    /// Boxed, because the library behind it is not part of the public API.
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What is watched.
pub(crate) trait Follow: Send + 'static {
    /// What a look finds.
    type Seen: Send;

    /// The files and directories to watch now.
    fn paths(&self) -> Vec<PathBuf>;

    /// Called when something may have changed. What it leaves in `glimpse` it has to find again.
    fn look(&self, glimpse: &mut Option<Glimpse<Self::Seen>>);

    /// Called when a directory cannot be watched, for this reason.
    fn unwatched(&self, reason: String);
}

impl Follow for Arc<Shared> {
    type Seen = Seen;

    fn paths(&self) -> Vec<PathBuf> {
        self.file().map(|file| file.path().to_owned()).into_iter().collect()
    }

    fn look(&self, glimpse: &mut Option<Glimpse<Seen>>) {
        self.reload_if_changed(glimpse);
    }

    fn unwatched(&self, reason: String) {
        self.tell(&Event::Unwatched(reason));
    }
}

impl Watching {
    pub(super) fn of(shared: &Arc<Shared>) -> Result<Self, WatchError> {
        match shared.file() {
            Some(_) => Self::begin(Arc::clone(shared)),
            None => Err(WatchError { source: None }),
        }
    }

    pub(crate) fn begin(follow: impl Follow) -> Result<Self, WatchError> {
        let (bell, ear) = Bell::new();
        let paths = follow.paths();
        let mut directories =
            Directories::new(bell.clone(), paths.clone()).map_err(WatchError::new)?;
        directories.watch(&paths).map_err(WatchError::new)?;
        // Changes since the files were read must not be missed.
        bell.ring();
        let thread = Thread { follow, directories, ear, glimpse: None };
        let thread = thread::Builder::new()
            .name("sluicegate-policies".to_owned())
            .spawn(move || thread.run())
            .map_err(WatchError::new)?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.bell.stop();
        if let Some(thread) = self.thread.take() {
            // A listener that drops this runs on the thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

struct Thread<F: Follow> {
    follow: F,
    directories: Directories,
    ear: Ear,
    /// What was read once.
    glimpse: Option<Glimpse<F::Seen>>,
}

impl<F: Follow> Thread<F> {
    fn run(mut self) {
        let mut watched = true;
        while self.ear.wait(self.until(watched)) == Next::Look {
            // The panic of a listener was reported already, and must not stop the watch.
            let look = AssertUnwindSafe(|| {
                watched = self.watch(watched);
                self.follow.look(&mut self.glimpse);
            });
            let _ = catch_unwind(look);
        }
    }

    fn until(&self, watched: bool) -> Until {
        match (&self.glimpse, watched) {
            (Some(_), _) => Until::Stable,
            (None, true) => Until::Rung,
            (None, false) => Until::Later,
        }
    }

    /// Watches the current directories before the files are read, so that later changes are seen. Reports a failure
    /// once.
    fn watch(&mut self, watched: bool) -> bool {
        let mut watch = || self.directories.watch(&self.follow.paths());
        // A directory that a link led to may have been removed since the link was read. The link leads elsewhere now.
        let failed = watch().or_else(|_| watch()).err();
        if let (true, Some(error)) = (watched, &failed) {
            self.follow.unwatched(error.to_string());
        }
        failed.is_none()
    }
}

/// The directories that are watched.
struct Directories {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl Directories {
    /// `paths` are the files whose writers are waited for, or their directories.
    fn new(bell: Bell, paths: Vec<PathBuf>) -> notify::Result<Self> {
        let is_about = move |changed: &PathBuf| {
            paths.iter().any(|path| path == changed || Some(path.as_path()) == changed.parent())
        };
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            let about = event.iter().find(|event| event.paths.iter().any(&is_about));
            if let Some(written) = about.and_then(|event| written(event.kind)) {
                bell.written(written);
            }
            // An error may mean that events were lost.
            if event.is_err() || event.is_ok_and(|event| may_change(event.kind)) {
                bell.ring();
            }
        })?;
        Ok(Self { watcher, watched: BTreeSet::new() })
    }

    /// Watches the directories of `paths` and no others. Each is watched anew, because another directory may have taken
    /// the name.
    fn watch(&mut self, paths: &[PathBuf]) -> notify::Result<()> {
        for directory in std::mem::take(&mut self.watched) {
            // The directory may be gone, and its watch with it.
            let _ = self.watcher.unwatch(&directory);
        }
        let around: BTreeSet<_> = paths.iter().flat_map(|path| directories(path)).collect();
        for directory in around {
            self.watcher.watch(&directory, RecursiveMode::NonRecursive)?;
            self.watched.insert(directory);
        }
        for path in paths {
            // The file itself too: a file that is mounted alone, or has a hard link elsewhere, changes without an
            // event in its directory. It may be missing.
            let is_new = !self.watched.contains(path);
            if is_new && self.watcher.watch(path, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(path.clone());
            }
        }
        Ok(())
    }
}

/// Whether a program has written to the file and not closed it, according to an event. Linux reports the closing.
/// Another file at the same path starts anew.
fn written(kind: EventKind) -> Option<bool> {
    let tells_closing = cfg!(any(target_os = "linux", target_os = "android"));
    match kind {
        EventKind::Modify(ModifyKind::Data(_)) => Some(tells_closing),
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(false),
        EventKind::Create(_) | EventKind::Remove(_) => Some(false),
        EventKind::Modify(ModifyKind::Name(_)) => Some(false),
        _ => None,
    }
}

/// Whether the file may have changed after such an event. Reading does not count: it would cause another read.
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
    fn a_file_that_is_only_read_has_not_changed() {
        assert!(!may_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(may_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(may_change(EventKind::Any));
    }
}
