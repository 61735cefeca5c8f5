//! Files of Envoy's rate limit service, read again while the service runs.
//!
//! All files are one set: it comes into force as a whole, or not at all.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arc_swap::{ArcSwap, Guard};
use sluicegate_config::Watching;
use sluicegate_config::envoy::service::Domains;
use sluicegate_config::texts::{Follower, Found, Texts};
use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;

use super::PoliciesError;
use super::domain_set::Set;

/// The endings of the files in a directory.
const ENDINGS: &[&str] = &["yaml", "yml"];

/// The domains in force, and their files.
#[derive(Clone)]
pub(super) struct LiveDomains {
    texts: Texts,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    in_force: ArcSwap<Domains>,
    /// Whether several files may have one domain.
    merges: AtomicBool,
    /// Locked while files are read.
    last: Mutex<Last>,
    listeners: RwLock<Vec<Listener>>,
}

#[derive(Default)]
struct Last {
    /// The files in force.
    found: Found,
    /// The files that were found since, and refused.
    refused: Option<Found>,
    /// What a management server has sent, which is in force.
    sent: Found,
    set: Set,
    check: Option<Check>,
}

/// What was read anew.
enum Read {
    Files(Found),
    Sent(Found),
}

/// Those of files, and those that were sent.
fn together(found: &Found, sent: &Found) -> Found {
    found.iter().chain(sent).map(|(path, text)| (path.clone(), text.clone())).collect()
}

type Listener = Arc<dyn Fn(&str) + Send + Sync>;
type Check = Box<dyn Fn(&Limit) -> Result<(), LimitError> + Send>;

/// The file at `path`, or those of the directory.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, PoliciesError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut texts = Texts::new(ENDINGS);
    texts.add(path);
    let files = texts.list().map_err(|why| PoliciesError::about(path, &why))?;
    // By the path that was given.
    Ok(files.iter().filter_map(|file| file.file_name()).map(|name| path.join(name)).collect())
}

impl LiveDomains {
    /// Whether several files may have one domain.
    pub(super) fn merge(&self, merges: bool) {
        self.shared.merges.store(merges, Ordering::Relaxed);
    }

    /// Adds a file, or the files of a directory, and puts all domains in force.
    pub(super) fn open(&mut self, path: &Path) -> Result<(), PoliciesError> {
        let mut texts = self.texts.clone();
        texts.add(path);
        let found = texts.read();
        let set = Set::read(&found, self.shared.merges())?;
        self.texts = texts;
        let mut last = self.shared.last();
        self.shared.put_in_force(&mut last, Read::Files(found), set);
        Ok(())
    }

    /// Reads all files again.
    pub(super) fn reload(&self) -> Result<(), PoliciesError> {
        let last = self.shared.last();
        self.shared.follow(last, Read::Files(self.texts.read()))
    }

    /// Puts what a management server has sent in force, beside the files. What is refused does not count.
    pub(super) fn receive(&self, sent: Found) -> Result<(), PoliciesError> {
        let last = self.shared.last();
        if last.sent == sent {
            return Ok(());
        }
        self.shared.follow(last, Read::Sent(sent))
    }

    /// What [`reload`](Self::reload) would change, one line for each domain. Nothing comes into force.
    pub(super) fn pending(&self) -> Result<Vec<String>, PoliciesError> {
        let found = self.texts.read();
        let last = self.shared.last();
        if last.refused.is_none() && last.found == found {
            return Ok(Vec::new());
        }
        let set = Set::read(&together(&found, &last.sent), self.shared.merges())?;
        last.must_keep(&set)?;
        Ok(set.changes_since(&last.set))
    }

    /// Whether there are any files.
    pub(super) fn is_empty(&self) -> bool {
        self.shared.last().found.is_empty()
    }

    /// Reads all files again when one changes, appears or is gone. `None` if there are none.
    pub(super) fn watch(&self) -> Result<Option<Watching>, PoliciesError> {
        if self.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.texts.watch(Arc::clone(&self.shared))?))
    }

    /// Calls `listener` with what happens to the files from now on.
    pub(super) fn on_event(&self, listener: Listener) {
        self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Refuses files with a limit that `check` does not pass, from now on.
    pub(super) fn keep(&self, check: Check) -> Result<(), PoliciesError> {
        let mut last = self.shared.last();
        last.check = Some(check);
        last.must_keep(&last.set)
    }

    pub(super) fn in_force(&self) -> Guard<Arc<Domains>> {
        self.shared.in_force.load()
    }
}

impl Default for LiveDomains {
    fn default() -> Self {
        Self { texts: Texts::new(ENDINGS), shared: Arc::default() }
    }
}

impl Shared {
    fn follow(&self, mut last: MutexGuard<'_, Last>, read: Read) -> Result<(), PoliciesError> {
        let all = match &read {
            Read::Files(found) => together(found, &last.sent),
            Read::Sent(sent) => together(&last.found, sent),
        };
        let before = |path: &Path| last.found.get(path).or_else(|| last.sent.get(path));
        let set = last.set.read_again(before, &all, self.merges());
        let set = set.and_then(|set| last.must_keep(&set).map(|()| set));
        let told = match set {
            Ok(set) => {
                let told =
                    format!("policies reloaded: {}", in_words(&set.changes_since(&last.set)));
                self.put_in_force(&mut last, read, set);
                tracing::info!("{told}");
                Ok(told)
            }
            Err(problems) => {
                if let Read::Files(found) = read {
                    last.refused = Some(found);
                }
                tracing::error!("policies not reloaded:\n{problems}");
                Err(problems)
            }
        };
        // A listener may read the files again.
        drop(last);
        match &told {
            Ok(told) => self.tell(told),
            Err(problems) => self.tell(&format!("policies not reloaded:\n{problems}")),
        }
        told.map(drop)
    }

    fn put_in_force(&self, last: &mut Last, read: Read, set: Set) {
        set.warn();
        self.in_force.store(Arc::new(set.domains()));
        match read {
            Read::Files(found) => {
                last.found = found;
                last.refused = None;
            }
            Read::Sent(sent) => last.sent = sent,
        }
        last.set = set;
    }

    fn tell(&self, what: &str) {
        // A listener may add a listener.
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        listeners.iter().for_each(|listener| listener(what));
    }

    fn merges(&self) -> bool {
        self.merges.load(Ordering::Relaxed)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_words(changes: &[String]) -> String {
    if changes.is_empty() { "nothing changed".to_owned() } else { changes.join("; ") }
}

impl Last {
    /// Whether this is what was found last, in force or refused.
    fn knows(&self, found: &Found) -> bool {
        self.refused.as_ref().unwrap_or(&self.found) == found
    }

    fn must_keep(&self, set: &Set) -> Result<(), PoliciesError> {
        let Some(check) = &self.check else { return Ok(()) };
        set.check(check)
    }
}

impl Follower for Shared {
    fn knows(&self, found: &Found) -> bool {
        self.last().knows(found)
    }

    fn changed(&self, found: Found) {
        let last = self.last();
        // A signal may have been quicker.
        if !last.knows(&found) {
            // Problems are reported as events.
            let _ = self.follow(last, Read::Files(found));
        }
    }

    fn unwatched(&self, reason: &str) {
        tracing::warn!("policies not watched: {reason}");
        self.tell(&format!("policies not watched: {reason}"));
    }
}

impl fmt::Debug for LiveDomains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_force().iter()).finish()
    }
}
