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
use tokio::sync::Notify;

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
    /// Told when something that was sent and refused comes into force after all.
    came_late: Notify,
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
    /// What it has sent since, and was refused.
    refused_sent: Option<Found>,
    set: Set,
    check: Option<Check>,
}

/// What was read anew.
enum Read {
    Files(Found),
    Sent(Found),
}

/// What comes into force with something that was read.
struct Next {
    set: Set,
    /// Whether it has what was refused from the other source before.
    has_refused: bool,
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
        self.shared.put_in_force(&mut last, Read::Files(found), Next { set, has_refused: false });
        Ok(())
    }

    /// Reads all files again.
    pub(super) fn reload(&self) -> Result<(), PoliciesError> {
        let last = self.shared.last();
        self.shared.follow(last, Read::Files(self.texts.read()))
    }

    /// Puts what a management server has sent in force, beside the files. What is refused comes into force with the next
    /// files that allow it.
    pub(super) fn receive(&self, sent: Found) -> Result<(), PoliciesError> {
        let mut last = self.shared.last();
        if last.sent == sent {
            last.refused_sent = None;
            return Ok(());
        }
        self.shared.follow(last, Read::Sent(sent))
    }

    /// Waits until something that a management server has sent comes into force that was refused before. `false`: what it
    /// has sent last is refused still.
    pub(super) async fn comes_late(&self) -> bool {
        self.shared.came_late.notified().await;
        self.shared.last().refused_sent.is_none()
    }

    /// What [`reload`](Self::reload) would change, one line for each domain. Nothing comes into force.
    pub(super) fn pending(&self) -> Result<Vec<String>, PoliciesError> {
        let found = self.texts.read();
        let last = self.shared.last();
        if last.refused.is_none() && last.found == found {
            return Ok(Vec::new());
        }
        let next = last.next(&Read::Files(found), self.shared.merges())?;
        Ok(next.set.changes_since(&last.set))
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
        let told = match last.next(&read, self.merges()) {
            Ok(next) => {
                let mut told =
                    format!("policies reloaded: {}", in_words(&next.set.changes_since(&last.set)));
                if next.has_refused {
                    told.push_str(match read {
                        Read::Files(_) => {
                            ". What the management server has sent and was refused is in force now"
                        }
                        Read::Sent(_) => ". The files that were refused are in force now",
                    });
                }
                self.put_in_force(&mut last, read, next);
                tracing::info!("{told}");
                Ok(told)
            }
            Err(problems) => {
                match read {
                    Read::Files(found) => last.refused = Some(found),
                    Read::Sent(sent) => last.refused_sent = Some(sent),
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

    fn put_in_force(&self, last: &mut Last, read: Read, Next { set, has_refused }: Next) {
        set.warn();
        self.in_force.store(Arc::new(set.domains()));
        match read {
            Read::Files(found) => {
                last.found = found;
                last.refused = None;
                if let Some(sent) = last.refused_sent.take_if(|_| has_refused) {
                    last.sent = sent;
                    self.came_late.notify_one();
                }
            }
            Read::Sent(sent) => {
                last.sent = sent;
                last.refused_sent = None;
                if let Some(found) = last.refused.take_if(|_| has_refused) {
                    last.found = found;
                }
            }
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

    /// What comes into force with what was read. Files and what was sent may be valid only together, so the newest of the
    /// other source is tried first, also if it was refused, and then what is in force of it.
    fn next(&self, read: &Read, merges: bool) -> Result<Next, PoliciesError> {
        let newest = match read {
            Read::Files(_) => self.refused_sent.as_ref(),
            Read::Sent(_) => self.refused.as_ref(),
        };
        if let Some(set) = newest.and_then(|other| self.with(read, other, merges).ok()) {
            return Ok(Next { set, has_refused: true });
        }
        let in_force = match read {
            Read::Files(_) => &self.sent,
            Read::Sent(_) => &self.found,
        };
        let set = self.with(read, in_force, merges)?;
        Ok(Next { set, has_refused: false })
    }

    /// What was read, together with something of the other source.
    fn with(&self, read: &Read, other: &Found, merges: bool) -> Result<Set, PoliciesError> {
        let (Read::Files(read) | Read::Sent(read)) = read;
        let all = read.iter().chain(other).map(|(path, text)| (path.clone(), text.clone()));
        let before = |path: &Path| self.found.get(path).or_else(|| self.sent.get(path));
        let set = self.set.read_again(before, &all.collect(), merges)?;
        self.must_keep(&set)?;
        Ok(set)
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

#[cfg(test)]
mod tests {
    use sluicegate_config::texts::Found;

    use super::*;

    /// Files with these domains, by their paths.
    fn texts(kind: &str, domains: &[&str]) -> Found {
        let file = |domain: &&str| {
            let text = format!(
                "{{domain: {domain}, descriptors: [{{key: user, rate_limit: {{unit: minute, requests_per_unit: 2}}}}]}}"
            );
            (PathBuf::from(format!("{kind}: {domain}")), Ok(text))
        };
        domains.iter().map(file).collect()
    }

    fn read(live: &LiveDomains, domains: &[&str]) -> bool {
        live.shared.follow(live.shared.last(), Read::Files(texts("file", domains))).is_ok()
    }

    fn receive(live: &LiveDomains, domains: &[&str]) -> bool {
        live.receive(texts("xds", domains)).is_ok()
    }

    fn in_force(live: &LiveDomains) -> Vec<String> {
        let last = live.shared.last();
        let paths = last.found.keys().chain(last.sent.keys());
        paths.map(|path| path.display().to_string()).collect()
    }

    #[tokio::test]
    async fn what_was_sent_and_refused_comes_into_force_with_the_files_that_make_room() {
        let live = LiveDomains::default();
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&told);
        live.on_event(Arc::new(move |what| listener.lock().unwrap().push(what.to_owned())));
        assert!(read(&live, &["edge", "other"]));
        assert!(!receive(&live, &["edge", "new"]), "`edge` is there twice");
        assert_eq!(in_force(&live), ["file: edge", "file: other"]);
        assert!(read(&live, &["other"]));
        assert_eq!(in_force(&live), ["file: other", "xds: edge", "xds: new"]);
        assert!(live.comes_late().await, "it can be acknowledged");
        let last = told.lock().unwrap().last().cloned().unwrap();
        assert!(last.ends_with("and was refused is in force now"), "{last}");
        // The same once more is no change, and nothing is left over that a later reading would take.
        assert!(receive(&live, &["edge", "new"]) && receive(&live, &[]));
        assert!(read(&live, &["edge"]));
        assert_eq!(in_force(&live), ["file: edge"]);
    }

    #[test]
    fn files_that_were_refused_come_into_force_with_what_the_server_sends_later() {
        let live = LiveDomains::default();
        assert!(read(&live, &["foo"]) && receive(&live, &["edge"]));
        assert!(!read(&live, &["edge"]), "`edge` is there twice");
        assert_eq!(in_force(&live), ["file: foo", "xds: edge"]);
        assert!(receive(&live, &["bar"]));
        assert_eq!(in_force(&live), ["file: edge", "xds: bar"]);
        assert!(live.shared.last().knows(&texts("file", &["edge"])));
        assert!(!live.shared.last().knows(&texts("file", &["foo"])));
    }

    #[test]
    fn what_is_refused_still_does_not_keep_the_other_source_from_changing() {
        let live = LiveDomains::default();
        assert!(read(&live, &["foo"]) && receive(&live, &["edge"]));
        assert!(!read(&live, &["edge"]));
        assert!(receive(&live, &["edge", "bar"]));
        assert_eq!(in_force(&live), ["file: foo", "xds: bar", "xds: edge"]);
        assert!(read(&live, &["foo"]), "the file is as it was");
        assert!(!receive(&live, &["foo"]) && read(&live, &["foo", "new"]));
        assert_eq!(in_force(&live), ["file: foo", "file: new", "xds: bar", "xds: edge"]);
        // The server takes back what was refused, so no file brings it into force.
        assert!(receive(&live, &["edge", "bar"]) && read(&live, &["new"]));
        assert_eq!(in_force(&live), ["file: new", "xds: bar", "xds: edge"]);
    }
}
