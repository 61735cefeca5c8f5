use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Found, Texts};
use crate::live::{Follow, Glimpse, WatchError, Watching};

/// What wants to know when files change: see [`Texts::watch`].
pub trait Follower: Send + Sync + 'static {
    /// Whether this is what was read last.
    fn knows(&self, found: &Found) -> bool;

    /// Called with what was found, once it has been found twice.
    fn changed(&self, found: Found);

    /// Called when a directory cannot be watched, for this reason. Another attempt follows each second.
    fn unwatched(&self, reason: &str);
}

impl Texts {
    /// Tells `follower` when the files change, as [`Live::watch`](crate::Live::watch) does for one file, until the
    /// returned value is dropped. Changes that happen close together are told once, and so is the exchange of a whole
    /// directory, such as that of a mounted `ConfigMap` of Kubernetes.
    ///
    /// # Errors
    ///
    /// If the system cannot watch a directory.
    pub fn watch(&self, follower: Arc<impl Follower>) -> Result<Watching, WatchError> {
        Watching::begin(Following { texts: self.clone(), follower })
    }
}

struct Following<F> {
    texts: Texts,
    follower: Arc<F>,
}

impl<F: Follower> Follow for Following<F> {
    type Seen = Found;

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: BTreeSet<_> = self.texts.paths.iter().cloned().collect();
        // A link in a directory changes when the file at its end does.
        let files = self.texts.paths.iter().filter_map(|path| self.texts.files(path).ok());
        paths.extend(files.flatten().filter(|file| file.is_symlink()));
        paths.into_iter().collect()
    }

    fn look(&self, glimpse: &mut Option<Glimpse<Found>>) {
        let found = self.texts.read();
        let is_known = self.follower.knows(&found);
        if let Some(found) = Glimpse::settled(glimpse, found, is_known) {
            self.follower.changed(found);
        }
    }

    fn unwatched(&self, reason: String) {
        self.follower.unwatched(&reason);
    }
}
