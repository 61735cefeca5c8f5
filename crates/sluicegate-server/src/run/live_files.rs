//! Files of TLS that are renewed while the server runs. Programs such as cert-manager replace them weeks before a certificate
//! expires, and tell nobody.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use sluicegate_config::Watching;
use sluicegate_config::texts::{Follower, Found, Texts};

use super::connection::Certificate;
use super::error::ServerError;
use super::tls::Tls;

/// The certificate of a port, and the files that it is read from.
#[derive(Clone)]
pub(crate) struct LiveCertificate {
    tls: Tls,
    in_force: Certificate,
}

impl LiveCertificate {
    /// Reads the certificate for the first time.
    pub(crate) fn read(tls: &Tls) -> Result<Self, ServerError> {
        let in_force = Arc::new(ArcSwap::from_pointee(tls.acceptor()?));
        Ok(Self { tls: tls.clone(), in_force })
    }

    /// The certificate for new connections.
    pub(crate) fn in_force(&self) -> Certificate {
        Arc::clone(&self.in_force)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.tls.files()
    }

    /// Reads the files again. What is not valid leaves the certificate as it is.
    pub(crate) fn reader(&self) -> Reader {
        let Self { tls, in_force } = self.clone();
        Arc::new(move || {
            in_force.store(Arc::new(tls.acceptor().map_err(|error| error.to_string())?));
            Ok(())
        })
    }
}

/// Reads files again, and puts them in force, or says what is wrong with them.
pub(crate) type Reader = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Calls all of them, and returns everything that is wrong.
pub(super) fn read_all(readers: &[Reader]) -> Result<(), String> {
    let wrong: Vec<_> = readers.iter().filter_map(|read| read().err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Files of TLS that can be watched.
#[derive(Clone)]
pub(crate) struct LiveFiles(Arc<Inner>);

struct Inner {
    texts: Texts,
    readers: Vec<Reader>,
    /// What was read last, whether it is in force or was refused. Locked while files are read.
    last: Mutex<Found>,
}

impl LiveFiles {
    /// Files that these `readers` read, and have read for the first time.
    pub(crate) fn new<'a>(files: impl Iterator<Item = &'a Path>, readers: Vec<Reader>) -> Self {
        let mut texts = Texts::new(&[]);
        files.for_each(|file| texts.add(file));
        // Nothing is known of what the files have been since.
        Self(Arc::new(Inner { texts, readers, last: Mutex::default() }))
    }

    /// Reads the files again. What is not valid stays as it was.
    pub(super) fn reload(&self) -> Result<(), String> {
        let found = self.0.texts.read();
        self.0.put_in_force(self.0.last(), found)
    }

    /// Reads the files again when they change, until the returned value is dropped. `None` if there are none.
    pub(super) fn watch(&self) -> Result<Option<Watching>, ServerError> {
        if self.0.texts.list().is_ok_and(|files| files.is_empty()) {
            return Ok(None);
        }
        // They may have changed since those in force were read.
        if let Err(problem) = self.reload() {
            tracing::error!("certificate not read again: {problem}");
        }
        let watching = self.0.texts.watch(Arc::clone(&self.0));
        watching
            .map(Some)
            .map_err(|error| ServerError::because("the certificate cannot be watched", error))
    }
}

impl Inner {
    fn last(&self) -> MutexGuard<'_, Found> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_in_force(&self, mut last: MutexGuard<'_, Found>, found: Found) -> Result<(), String> {
        *last = found;
        read_all(&self.readers)
    }
}

impl Follower for Inner {
    fn knows(&self, found: &Found) -> bool {
        *self.last() == *found
    }

    fn changed(&self, found: Found) {
        let last = self.last();
        // A signal may have been quicker.
        if *last == found {
            return;
        }
        match self.put_in_force(last, found) {
            Ok(()) => tracing::info!("certificate read again"),
            Err(problem) => tracing::error!("certificate not read again: {problem}"),
        }
    }

    fn unwatched(&self, reason: &str) {
        tracing::warn!("certificate not watched: {reason}");
    }
}
