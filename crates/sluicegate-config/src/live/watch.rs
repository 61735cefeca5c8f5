//! Watches a policy file.
//!
//! An empty file is refused. A program that writes in place empties the file first, and the limits hold meanwhile.
//! The parsed document is asked whether it has `rules` (in Envoy's format, whether a descriptor has a `rate_limit`,
//! or the list is `[]`), never the text. A TOML or YAML file that was cut off between two rules is a valid file with
//! fewer rules, and nothing in it shows that. So a text is put in force only after it was read twice, and on Linux
//! after the program that wrote the file has closed it. Only regular files are read, opened without blocking, up to 32
//! MiB. The directory is watched and not the file. It is watched anew after each reading, because links may lead
//! elsewhere. Texts are compared, so an event only says that something may have changed.

use std::collections::BTreeSet;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, fs, io};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};

use super::file::Contents;
use super::notifier::{AGAIN, Notifications, Notifier, STABLE};
use super::{Event, Live};

/// Watches a file until it is dropped; see [`Live::watch`](super::Live::watch).
///
/// There are no events after the drop.
#[must_use = "dropped, it stops watching"]
pub struct Watching {
    notifier: Notifier,
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
    type Found: Send;

    /// The files and directories to watch now.
    fn paths(&self) -> Vec<PathBuf>;

    /// Called when something may have changed. What it leaves in `snapshot` it has to find again. Returns whether what is
    /// there could be read. If not, another look follows after a pause, because no event tells that it can be read again.
    fn look(&self, snapshot: &mut Option<Snapshot<Self::Found>>) -> bool;

    /// Called when a directory cannot be watched, for this reason.
    fn unwatched(&self, reason: String);
}

impl Follow for Live {
    type Found = Contents;

    fn paths(&self) -> Vec<PathBuf> {
        self.shared.file.iter().map(|file| file.path().to_owned()).collect()
    }

    /// Reloads the file if its text differs from the last one read and has settled.
    fn look(&self, snapshot: &mut Option<Snapshot<Contents>>) -> bool {
        let Some(file) = &self.shared.file else { return true };
        let last = self.last();
        let contents = file.contents();
        let is_known = last.contents.as_ref() == Some(&contents);
        let is_readable = match &contents {
            // That is told by an event when it is over.
            Contents::Unreadable(kind, _) => *kind == io::ErrorKind::InvalidData,
            _ => true,
        };
        if let Some(contents) = Snapshot::settled(snapshot, contents, is_known) {
            // Errors are published as events.
            let _ = self.follow(file, last, contents);
        }
        is_readable
    }

    fn unwatched(&self, reason: String) {
        self.publish(&Event::Unwatched(reason));
    }
}

impl Watching {
    pub(crate) fn begin(follow: impl Follow) -> Result<Self, WatchError> {
        let (notifier, notifications) = Notifier::new();
        let paths = follow.paths();
        let mut directories =
            Directories::new(notifier.clone(), paths.clone()).map_err(WatchError::new)?;
        directories.watch(&paths).map_err(WatchError::new)?;
        // Changes since the files were read must not be missed.
        notifier.notify();
        let thread = Thread { follow, directories, notifications, snapshot: None };
        let thread = thread::Builder::new()
            .name("sluicegate-policies".to_owned())
            .spawn(move || thread.run())
            .map_err(WatchError::new)?;
        Ok(Self { notifier, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.notifier.stop();
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
    notifications: Notifications,
    /// What was read once.
    snapshot: Option<Snapshot<F::Found>>,
}

impl<F: Follow> Thread<F> {
    fn run(mut self) {
        let (mut watched, mut readable) = (true, true);
        while self.notifications.wait(most(self.snapshot.is_some(), watched && readable)) {
            // The panic of a listener was reported already, and must not stop the watch.
            let look = AssertUnwindSafe(|| {
                watched = self.watch(watched);
                readable = self.follow.look(&mut self.snapshot);
            });
            let _ = catch_unwind(look);
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

/// How long to wait for an event: until the same has to be found again, or what failed is tried again.
fn most(has_snapshot: bool, is_well: bool) -> Option<Duration> {
    match (has_snapshot, is_well) {
        (true, _) => Some(STABLE),
        (false, true) => None,
        (false, false) => Some(AGAIN),
    }
}

/// The directories that are watched.
struct Directories {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// The files, and the directories around them.
    near: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Directories {
    /// `paths` are the files whose writers are waited for, or their directories.
    fn new(notifier: Notifier, paths: Vec<PathBuf>) -> notify::Result<Self> {
        let is_about = move |changed: &PathBuf| {
            paths.iter().any(|path| path == changed || Some(path.as_path()) == changed.parent())
        };
        let near = Arc::new(Mutex::new(BTreeSet::new()));
        let known = Arc::clone(&near);
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_beside = |event: &notify::Event| {
                !concerns(&known.lock().unwrap_or_else(PoisonError::into_inner), event)
            };
            if ABOVE && event.as_ref().is_ok_and(is_beside) {
                return;
            }
            let about = event.iter().find(|event| event.paths.iter().any(&is_about));
            if let Some(written) = about.and_then(|event| written(event.kind)) {
                notifier.written(written);
            }
            // An error may mean that events were lost.
            if event.is_err() || event.is_ok_and(|event| may_change(event.kind)) {
                notifier.notify();
            }
        })?;
        Ok(Self { watcher, watched: BTreeSet::new(), near })
    }

    /// Watches the directories of `paths` and no others. Each is watched anew, because another directory may have taken
    /// the name.
    fn watch(&mut self, paths: &[PathBuf]) -> notify::Result<()> {
        for directory in std::mem::take(&mut self.watched) {
            // The directory may be gone, and its watch with it.
            let _ = self.watcher.unwatch(&directory);
        }
        let around: BTreeSet<_> = paths.iter().flat_map(|path| directories(path)).collect();
        let near = around.iter().chain(paths).cloned().collect();
        // Not locked below: to watch a directory waits for the thread that reports events.
        *self.near.lock().unwrap_or_else(PoisonError::into_inner) = near;
        for directory in above(&around) {
            // Not every directory above may be read.
            if self.watcher.watch(&directory, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(directory);
            }
        }
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

/// Whether an event is about what is near, or about a directory above it.
fn concerns(near: &BTreeSet<PathBuf>, event: &notify::Event) -> bool {
    let is_near = |changed: &PathBuf| changed.parent().is_some_and(|parent| near.contains(parent));
    let is_above = |changed: &PathBuf| near.iter().any(|path| path.starts_with(changed));
    // Without a path, events may have been lost.
    event.paths.is_empty()
        || event.paths.iter().any(|changed| is_near(changed) || is_above(changed))
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

    pub(super) fn without_file() -> Self {
        Self { source: None }
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

/// The most symbolic links that are followed. More are a circle, as for the operating system.
const LINKS: usize = 40;

/// The directories that change when another file appears at `path`: its own, and those of every symbolic link on
/// the way to the file.
fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        found.extend(path.parent().map(Path::to_owned));
        let Some((link, target)) = first_link(&path) else { break };
        found.extend(link.parent().map(Path::to_owned));
        // An absolute target replaces everything before it.
        let rest = path.strip_prefix(&link).unwrap_or(Path::new("")).to_owned();
        let mut next = link.parent().unwrap_or(Path::new("/")).join(target);
        if !rest.as_os_str().is_empty() {
            next.push(rest);
        }
        path = next;
    }
    found
}

/// Whether directories above are watched. Other systems watch all that is in a directory, or all that is below it, which may
/// be the whole disk, and some name what has changed by other paths.
const ABOVE: bool = cfg!(any(target_os = "linux", target_os = "android", windows));

/// The directories above these. When one of them is renamed, another file is at the same path.
fn above(directories: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let above = directories.iter().filter(|_| ABOVE).flat_map(|path| path.ancestors().skip(1));
    let above = above.filter(|path| !path.as_os_str().is_empty() && !directories.contains(*path));
    above.map(Path::to_owned).collect()
}

/// The first name on the way that is a link, and where it leads.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut names: Vec<_> = path.ancestors().collect();
    names.reverse();
    names.into_iter().find_map(|link| Some((link.to_owned(), fs::read_link(link).ok()?)))
}

/// The most attempts to read the same twice. Files that change all the time take effect after that.
const LOOKS: u32 = 50;

/// What was read once and has not taken effect yet.
#[derive(Debug)]
pub(crate) struct Snapshot<S> {
    found: S,
    /// How many attempts found something different from the one before.
    looks: u32,
}

impl<S: PartialEq> Snapshot<S> {
    /// What is to take effect now: what was found, if it is not known and was the same at the previous attempt, so that a
    /// half-written file does not take effect.
    pub(crate) fn settled(snapshot: &mut Option<Self>, found: S, is_known: bool) -> Option<S> {
        let before = snapshot.take();
        // The text in force again: a change that was taken back before it was found twice.
        if is_known {
            return None;
        }
        let looks = before.as_ref().map_or(0, |before| before.looks);
        if looks < LOOKS && before.is_none_or(|before| before.found != found) {
            *snapshot = Some(Self { found, looks: looks + 1 });
            return None;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_is_only_read_has_not_changed() {
        assert!(!may_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(may_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(may_change(EventKind::Any));
    }

    /// A process may have too many files open for a moment, of which no event tells.
    #[test]
    fn a_file_that_cannot_be_read_is_looked_at_again_after_a_pause() {
        let text = |count: u64| {
            let rule = "[[rules]]\nname = \"all\"\nkey = \"global\"";
            format!("{rule}\nlimits = [\"{count}/minute\"]\n")
        };
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policies.toml");
        fs::write(&path, text(10)).expect("a file");
        let live = Live::open(&path, crate::Environment::new()).expect("valid policies");
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        live.on_event(move |event| told.lock().expect("no panic").push(event.clone()));
        let mut snapshot = None;
        assert!(live.look(&mut snapshot));
        assert_eq!(most(snapshot.is_some(), true), None);
        fs::remove_file(&path).expect("a file");
        fs::create_dir(&path).expect("a directory");
        for looks in 1..=4 {
            assert!(!live.look(&mut snapshot));
            let pause = if looks == 1 { STABLE } else { AGAIN };
            assert_eq!(most(snapshot.is_some(), false), Some(pause));
        }
        // Told once, however often it is tried.
        assert_eq!(events.lock().expect("no panic").len(), 1);
        fs::remove_dir(&path).expect("a directory");
        fs::write(&path, text(20)).expect("a file");
        assert!(live.look(&mut snapshot));
        assert!(live.look(&mut snapshot));
        assert_eq!(most(snapshot.is_some(), true), None);
        let events = events.lock().expect("no panic");
        assert!(matches!(&events[..], [Event::Refused(_), Event::Reloaded(_)]), "{events:?}");
    }

    #[test]
    fn a_plain_file_has_one_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().canonicalize().expect("a path without links");
        let found = directories(&directory.join("policies.toml"));
        assert_eq!(found, [directory].into());
    }

    #[test]
    fn a_directory_above_counts_and_what_is_beside_the_way_does_not() {
        let around = directories(Path::new("/srv/app/policies/policies.toml"));
        let above = above(&around);
        if cfg!(target_os = "linux") {
            assert_eq!(above, ["/", "/srv", "/srv/app"].map(PathBuf::from).into());
        }
        let concerns = |path: &str| {
            concerns(&around, &notify::Event::new(EventKind::Any).add_path(path.into()))
        };
        for path in ["/srv", "/srv/app", "/srv/app/policies", "/srv/app/policies/other.toml"] {
            assert!(concerns(path), "{path}");
        }
        for path in ["/tmp", "/srv/other", "/srv/app/other", "/srv/app/policies/other/deeper"] {
            assert!(!concerns(path), "{path}");
        }
    }

    #[test]
    fn every_link_on_the_way_is_in_a_directory_that_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        for name in ["mounted", "mounted/..1", "elsewhere", "versions", "versions/1"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        fs::create_dir_all(at("versions/1/a/b")).expect("a directory");
        symlink("versions/1", at("current")).expect("a link");
        fs::write(at("elsewhere/real.toml"), "").expect("a file");
        symlink("..1", at("mounted/..data")).expect("a link");
        symlink(at("elsewhere/real.toml"), at("mounted/..1/policies.toml")).expect("a link");
        symlink("..data/policies.toml", at("mounted/policies.toml")).expect("a link");
        let found = directories(&at("mounted/policies.toml"));
        for name in ["mounted", "mounted/..1", "elsewhere"] {
            assert!(found.contains(&at(name)), "{name}: {found:?}");
        }
        // A link far above the file.
        let found = directories(&at("current/a/b/policies.toml"));
        for name in ["", "current/a/b", "versions/1/a/b"] {
            assert!(found.contains(at(name).components().as_path()), "{name}: {found:?}");
        }
    }

    #[test]
    fn links_that_lead_in_a_circle_come_to_an_end() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("a path without links");
        symlink("b.toml", root.join("a.toml")).expect("a link");
        symlink("a.toml", root.join("b.toml")).expect("a link");
        assert_eq!(directories(&root.join("a.toml")), [root].into());
    }
}
