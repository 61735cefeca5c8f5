//! Files of Envoy's rate limit service, read again while the service runs.
//!
//! `Live` reads, watches and reports on a file, by a document of its limits. The domain that was read beside it comes into
//! force when `Live` says that the file has been accepted.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use sluicegate_config::SourceLocation;
use sluicegate_config::document::Document;
use sluicegate_config::{Diagnostic, Environment, Event, Format, Live, PolicyError, PolicyFile};
use sluicegate_envoy::service::{Domain, Domains};

use super::error::PoliciesError;

/// The domains in force, and their files.
#[derive(Clone, Default)]
pub(super) struct LiveDomains(Arc<Shared>);

#[derive(Default)]
struct Shared {
    in_force: ArcSwap<Domains>,
    files: Mutex<Vec<File>>,
}

struct File {
    live: Live,
    domain: Arc<Domain>,
}

/// The domain that was read last and is not in force yet.
type Read = Arc<Mutex<Option<Arc<Domain>>>>;

impl LiveDomains {
    /// Reads a file and puts its domain in force.
    pub(super) fn open(&self, path: &Path) -> Result<(), PoliciesError> {
        let read = Read::default();
        let (shared, at) = (Arc::downgrade(&self.0), self.files().len());
        let others = move |name: &str| {
            let shared = shared.upgrade()?;
            let files = shared.files.lock().unwrap_or_else(PoisonError::into_inner);
            let mut others = files.iter().enumerate().filter(|(other, _)| *other != at);
            others.any(|(_, file)| file.domain.name() == name).then_some(())
        };
        let taken = Arc::new(AtomicBool::new(false));
        let is_taken = {
            let taken = Arc::clone(&taken);
            move |name: &str| {
                let is_taken = others(name).is_some();
                taken.store(is_taken, Ordering::Relaxed);
                is_taken
            }
        };
        let format = format(Arc::clone(&read), is_taken);
        let live = Live::open(PolicyFile::new(path).format(format), Environment::new());
        let live = live.map_err(|error| match taken.load(Ordering::Relaxed) {
            true => PoliciesError::from(error).same_domain(),
            false => error.into(),
        })?;
        let Some(domain) = take(&read) else {
            return Err(PoliciesError::empty(path));
        };
        self.files().push(File { live: live.clone(), domain });
        self.0.publish();
        let shared = Arc::downgrade(&self.0);
        live.on_event(move |event| {
            let (Event::Reloaded(_), Some(shared)) = (event, shared.upgrade()) else { return };
            if let Some(domain) = take(&read) {
                shared.replace(at, domain);
            }
        });
        Ok(())
    }

    /// What `each` makes of the files.
    pub(super) fn each<T>(&self, each: impl Fn(&Live) -> T) -> Vec<T> {
        // Not under the lock: reading a file takes it.
        let files: Vec<_> = self.files().iter().map(|file| file.live.clone()).collect();
        files.iter().map(each).collect()
    }

    pub(super) fn in_force(&self) -> Guard<Arc<Domains>> {
        self.0.in_force.load()
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<File>> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn replace(&self, at: usize, domain: Arc<Domain>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get_mut(at) {
            file.domain = domain;
        }
        drop(files);
        self.publish();
    }

    /// Puts the domains of all files in force.
    fn publish(&self) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut domains = Domains::new();
        for file in files.iter() {
            domains.add(Arc::clone(&file.domain));
        }
        self.in_force.store(Arc::new(domains));
    }
}

fn take(read: &Read) -> Option<Arc<Domain>> {
    read.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Reads a domain into `read`. `is_taken` tells whether another file has the domain.
fn format(read: Read, is_taken: impl Fn(&str) -> bool + Send + Sync + 'static) -> Format {
    let reader = move |text: &str| -> Result<(Document, Vec<Diagnostic>), PolicyError> {
        let (domain, warnings) = Domain::read(text)?;
        let start = SourceLocation { line: 1, column: 1 };
        if is_taken(domain.name()) {
            let what = format!(
                "another file has the domain `{}` already: give each file a domain of its own",
                domain.name()
            );
            return Err(Diagnostic::new("domain", what).at(Some(start)).into());
        }
        let document = domain.document();
        *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(domain));
        Ok((document, warnings))
    };
    Format::new(
        reader,
        "no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits",
    )
}

impl fmt::Debug for LiveDomains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_force().iter()).finish()
    }
}
