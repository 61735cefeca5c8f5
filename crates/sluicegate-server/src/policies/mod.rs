//! The files that a service answers by.

mod describe;
mod domains;
mod error;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluicegate_config::{Environment, Live};
use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;
use sluicegate_core::store::Store;
use sluicegate_envoy::service::Domains;

use self::domains::LiveDomains;
pub use self::error::PoliciesError;

/// The policies of a service, which change while it runs. Clones share them.
///
/// There are two kinds. Files of [Envoy's rate limit service](Self::envoy) decide about descriptors. A file in
/// sluicegate's own [format](Self::rules) decides about requests.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    domains: LiveDomains,
    rules: Option<Live>,
}

impl Policies {
    /// No policies: nothing is limited.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file of Envoy's rate limit service, or every `.yaml` and `.yml` file of a directory.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with a file, or a domain that two files have.
    pub fn envoy(self, path: impl AsRef<Path>) -> Result<Self, PoliciesError> {
        for file in Self::files(path)? {
            self.domains.open(&file)?;
        }
        Ok(self)
    }

    /// The files that [`envoy`](Self::envoy) reads: the file at `path`, or those of the directory at `path`, in order of
    /// their names.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read, or has no file that ends in `.yaml` or `.yml`.
    pub fn files(path: impl AsRef<Path>) -> Result<Vec<PathBuf>, PoliciesError> {
        files(path.as_ref())
    }

    /// Adds the rules of a file in TOML or JSON.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, or that there is one already.
    pub fn rules(mut self, path: impl AsRef<Path>) -> Result<Self, PoliciesError> {
        if self.rules.is_some() {
            return Err(PoliciesError::second_rules(path.as_ref()));
        }
        self.rules = Some(Live::open(path, Environment::new())?);
        Ok(self)
    }

    /// Reads every file again. A file that is not valid leaves its policies as they are.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub fn reload(&self) -> Result<(), PoliciesError> {
        let rules = self.rules.as_ref().map(Live::reload);
        let files = self.domains.each(Live::reload);
        let failed = rules.into_iter().chain(files).filter_map(Result::err);
        PoliciesError::all(failed)
    }

    /// Reads a file again when it changes, until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// If the system cannot watch the directory of a file.
    pub fn watch(&self) -> Result<Watching, PoliciesError> {
        let rules = self.rules.as_ref().map(Live::watch);
        let files = self.domains.each(Live::watch);
        let watching = rules.into_iter().chain(files).collect::<Result<_, _>>();
        watching.map(Watching).map_err(PoliciesError::unwatched)
    }

    /// Calls `each` with what happens to the files from now on, as one line.
    pub fn on_event(&self, each: impl Fn(&str) + Send + Sync + 'static) {
        let each = Arc::new(each);
        let listen = |live: &Live| {
            let each = Arc::clone(&each);
            live.on_event(move |event| each(&event.to_string()));
        };
        self.rules.iter().for_each(listen);
        self.domains.each(listen);
    }

    /// Refuses files with a limit that `store` cannot keep, from now on.
    pub(crate) fn kept_by<S>(&self, store: &S) -> Result<(), PoliciesError>
    where
        S: Store + Clone + Send + Sync + 'static,
    {
        self.rules.iter().try_for_each(|rules| rules.kept_by(store.clone()))?;
        Ok(())
    }

    /// The domains in force.
    pub(crate) fn domains(&self) -> impl std::ops::Deref<Target = Arc<Domains>> {
        self.domains.in_force()
    }

    /// The rules, if there are any.
    pub fn live(&self) -> Option<&Live> {
        self.rules.as_ref()
    }
}

/// Files that are watched: see [`Policies::watch`].
#[derive(Debug)]
#[must_use = "dropped, it stops watching"]
#[expect(dead_code, reason = "held until it is dropped")]
pub struct Watching(Vec<sluicegate_config::Watching>);

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.iter().for_each(|rules| rules.each_limit(each));
        self.domains().iter().for_each(|domain| domain.each_limit(each));
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, PoliciesError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| PoliciesError::unreadable(path, &error);
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let extension = file.extension().unwrap_or_default();
        if (extension == "yaml" || extension == "yml") && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(PoliciesError::empty(path)) } else { Ok(files) }
}
