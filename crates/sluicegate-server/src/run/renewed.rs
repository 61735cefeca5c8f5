//! A certificate that is renewed while the server runs. Programs such as cert-manager replace its files weeks before it
//! expires, and tell nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluicegate_config::texts::{Follower, Found, Texts};

use super::connection::Certificate;
use super::error::ServerError;
use super::tls::Tls;

/// The files of a certificate, and the one in force.
#[derive(Clone)]
pub(super) struct Renewed(Arc<Inner>);

struct Inner {
    tls: Tls,
    in_force: Certificate,
    texts: Texts,
    /// What was read last, whether it is in force or was refused. Locked while files are read.
    last: Mutex<Found>,
}

impl Renewed {
    /// `in_force` was read from these files, and nothing is known of what they have been since.
    pub(super) fn new(tls: &Tls, in_force: &Certificate) -> Self {
        let mut texts = Texts::new(&[]);
        tls.files().for_each(|file| texts.add(file));
        let (tls, in_force, last) = (tls.clone(), in_force.clone(), Mutex::default());
        Self(Arc::new(Inner { tls, in_force, texts, last }))
    }

    /// Reads the files again. What is not valid leaves the certificate as it is.
    pub(super) fn reload(&self) -> Result<(), ServerError> {
        let found = self.0.texts.read();
        self.0.put_in_force(self.0.last(), found)
    }

    /// Reads the files again when they change, until the returned value is dropped.
    pub(super) fn watch(&self) -> Result<sluicegate_config::Watching, ServerError> {
        // They may have changed since the one in force was read from them.
        if let Err(problem) = self.reload() {
            tracing::error!("certificate not read again: {problem}");
        }
        let watching = self.0.texts.watch(Arc::clone(&self.0));
        watching.map_err(|error| ServerError::because("the certificate cannot be watched", error))
    }
}

impl Inner {
    fn last(&self) -> MutexGuard<'_, Found> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_in_force(
        &self,
        mut last: MutexGuard<'_, Found>,
        found: Found,
    ) -> Result<(), ServerError> {
        *last = found;
        self.in_force.store(Arc::new(self.tls.acceptor()?));
        Ok(())
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
