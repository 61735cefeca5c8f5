//! The files that a service answers by.

mod describe;
mod domain_set;
mod domains;
mod xds;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluicegate_config::envoy::service::Domains;
use sluicegate_config::{Changes, Environment, Live, PolicyError, WatchError, Watching};
use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;
use sluicegate_core::store::Store;

use self::domains::LiveDomains;
use crate::capacity::LiveCapacities;
use crate::status::PendingStatus;

pub use self::xds::{Following, Xds};

/// The policies of a service, which change while it runs. Clones share them.
///
/// There are three kinds. Files of [Envoy's rate limit service](Self::envoy) decide about descriptors. A file in
/// sluicegate's own [format](Self::rules) decides about requests. A file of [capacity](Self::capacity) says what
/// clients share.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    domains: LiveDomains,
    rules: Option<Live>,
    capacity: Option<LiveCapacities>,
}

impl Policies {
    /// No policies: nothing is limited.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file of Envoy's rate limit service, or every `.yaml` and `.yml` file of a directory whose name does not begin
    /// with a dot. All these files are one set: a reload puts all of them in force, or none.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with a file, or a domain that two files have, unless they are
    /// [merged](Self::merge_domains).
    pub fn envoy(mut self, path: impl AsRef<Path>) -> Result<Self, PoliciesError> {
        self.domains.open(path.as_ref())?;
        Ok(self)
    }

    /// Lets several files of Envoy's service have one domain, which has the descriptors of all then. The default is no: that is
    /// an error. Say it before the files are added.
    #[must_use]
    pub fn merge_domains(self, merges: bool) -> Self {
        self.domains.merge(merges);
        self
    }

    /// These rules, which need not be from a file without `[throttle]`.
    pub(crate) fn of(rules: Live) -> Self {
        Self { rules: Some(rules), ..Self::default() }
    }

    /// The files that [`envoy`](Self::envoy) reads: the file at `path`, or those of the directory at `path`, in order of
    /// their names.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read, or has no file that ends in `.yaml` or `.yml`.
    pub fn files(path: impl AsRef<Path>) -> Result<Vec<PathBuf>, PoliciesError> {
        domains::files(path.as_ref())
    }

    /// Adds the rules of a file in TOML or JSON.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, a `[throttle]` in it, or that there is one already.
    pub fn rules(mut self, path: impl AsRef<Path>) -> Result<Self, PoliciesError> {
        if self.rules.is_some() {
            let why = "there is a file with rules already: put all rules into one file";
            return Err(PoliciesError::about(path.as_ref(), why));
        }
        self.rules = Some(Live::open(path, Environment::new().without_throttle(NO_THROTTLE))?);
        Ok(self)
    }

    /// Adds a file of capacity that clients share, in TOML: see
    /// [`Capacities::read`](crate::capacity::Capacities::read).
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, or that there is one already.
    pub fn capacity(mut self, path: impl AsRef<Path>) -> Result<Self, PoliciesError> {
        if self.capacity.is_some() {
            let why = "there is a file of capacity already: put all capacities into one file";
            return Err(PoliciesError::about(path.as_ref(), why));
        }
        self.capacity = Some(LiveCapacities::open(path.as_ref())?);
        Ok(self)
    }

    /// Takes files of Envoy's rate limit service from a management server, beside those that were [added](Self::envoy),
    /// until the returned value is dropped. What cannot come into force is refused with the reason, and what is in force
    /// stays, until a change of the files makes it valid. What is in force stays while the server is away, too.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn follow(&self, xds: Xds) -> Following {
        xds.follow(self.domains.clone())
    }

    /// Reads every file again, and looks for new files in directories. Rules that are not valid leave the rules as they are,
    /// and so does a file of capacity.
    /// A file of Envoy's service that is not valid leaves all of these files as they are, until what a management server sends
    /// makes it valid.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub fn reload(&self) -> Result<(), PoliciesError> {
        let own = self.own().map(|live| live.reload().map(drop).map_err(PoliciesError::from));
        let wrong: Vec<_> = own.chain([self.domains.reload()]).filter_map(Result::err).collect();
        if wrong.is_empty() { Ok(()) } else { Err(PoliciesError::all(wrong)) }
    }

    /// Reads a file again when it changes, and all of a directory when a file in it changes, appears or is gone, until the
    /// returned values are dropped.
    ///
    /// # Errors
    ///
    /// If the system cannot watch the directory of a file.
    pub fn watch(&self) -> Result<Vec<Watching>, PoliciesError> {
        let own = self.own().map(Live::watch).collect::<Result<Vec<_>, _>>()?;
        Ok(own.into_iter().chain(self.domains.watch()?).collect())
    }

    /// Calls `each` with what happens to the files from now on, as one line.
    pub fn on_event(&self, each: impl Fn(&str) + Send + Sync + 'static) {
        let each: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(each);
        for live in self.own() {
            let each = Arc::clone(&each);
            live.on_event(move |event| each(&event.to_string()));
        }
        self.domains.on_event(each);
    }

    /// Refuses files with a limit that `store` cannot keep, from now on.
    pub(crate) fn kept_by<S>(&self, store: &S) -> Result<(), PoliciesError>
    where
        S: Store + Clone + Send + Sync + 'static,
    {
        self.rules.iter().try_for_each(|rules| rules.kept_by(store.clone()))?;
        let store = store.clone();
        self.domains.keep(Box::new(move |limit| store.check(limit)))
    }

    /// The domains in force.
    pub(crate) fn domains(&self) -> impl std::ops::Deref<Target = Arc<Domains>> {
        self.domains.in_force()
    }

    /// The capacities that clients share, if there is a file of them.
    pub(crate) fn capacities(&self) -> Option<&LiveCapacities> {
        self.capacity.as_ref()
    }

    /// The files in sluicegate's own format.
    fn own(&self) -> impl Iterator<Item = &Live> {
        self.rules.iter().chain(self.capacity.as_ref().map(LiveCapacities::live))
    }

    /// The rules, if there are any.
    pub fn live(&self) -> Option<&Live> {
        self.rules.as_ref()
    }
}

impl KnownLimits for Policies {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.iter().for_each(|rules| rules.each_limit(each));
        self.domains().iter().for_each(|domain| domain.each_limit(each));
    }
}

const NO_THROTTLE: &str = "a server that passes no requests on cannot throttle them: `sluicegate proxy` does, for files with \
                           `[listen]` and `[upstream]`; expected no `[throttle]`";

// What would change if files were read again.

impl Policies {
    /// Compares files with the policies in force. Nothing comes into force.
    pub(crate) fn pending(&self) -> Vec<PendingStatus> {
        let rules = self.live().map(|live| {
            let changes = live.pending().map_err(PoliciesError::from);
            PendingStatus::of("rules", changes.map(|changes| words(&changes)))
        });
        let domains = (!self.domains.is_empty()).then(|| {
            PendingStatus::of("files of Envoy's rate limit service", self.domains.pending())
        });
        rules.into_iter().chain(domains).collect()
    }
}

/// The most lines about changes, and about problems.
const MOST: usize = 100;

impl PendingStatus {
    fn of(files: &str, changes: Result<Vec<String>, PoliciesError>) -> Self {
        let (mut changes, mut problems) = match changes {
            Ok(changes) => (changes, Vec::new()),
            Err(error) => (Vec::new(), error.to_string().lines().map(str::to_owned).collect()),
        };
        // One of the two is empty.
        let more = (changes.len() + problems.len()).saturating_sub(MOST) as u64;
        changes.truncate(MOST);
        problems.truncate(MOST);
        Self { files: files.to_owned(), changes, problems, more }
    }
}

fn words(changes: &Changes) -> Vec<String> {
    let named = |what: &'static str, names: &[String]| {
        names.iter().map(move |name| format!("{what} {name}")).collect::<Vec<_>>()
    };
    let limits = changes.limits.iter().map(|limit| &limit.name);
    let told: BTreeSet<_> = limits.chain(&changes.rekeyed).collect();
    let others = changes.changed.iter().filter(|name| !told.contains(name));
    let mut words = named("added", &changes.added);
    words.extend(named("removed", &changes.removed));
    words.extend(changes.limits.iter().map(|limit| format!("changed {limit}")));
    let rekeyed = changes.rekeyed.iter();
    words.extend(
        rekeyed.map(|name| format!("changed {name} (another key: what was spent is not counted)")),
    );
    words.extend(others.map(|name| format!("changed {name}")));
    words.extend(changes.settings.iter().map(|setting| format!("changed {setting}")));
    words
}

/// What is wrong with the files of a service: one line for each problem, with its file, line and column where they
/// are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoliciesError {
    lines: String,
    several: bool,
}

impl PoliciesError {
    pub(crate) fn of(lines: String) -> Self {
        Self { lines, several: false }
    }

    /// Whether each file is valid by itself: two of them have the same domain.
    pub fn is_of_several_files(&self) -> bool {
        self.several
    }

    pub(super) fn about(path: &Path, why: &str) -> Self {
        Self::of(format!("{}: {why}", path.display()))
    }

    /// All of these.
    pub(super) fn all<E: fmt::Display>(errors: impl IntoIterator<Item = E>) -> Self {
        let lines: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
        Self::of(lines.join("\n"))
    }
}

impl From<WatchError> for PoliciesError {
    fn from(error: WatchError) -> Self {
        Self::of(error.to_string())
    }
}

impl From<PolicyError> for PoliciesError {
    fn from(error: PolicyError) -> Self {
        Self::of(error.to_string())
    }
}

impl fmt::Display for PoliciesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines)
    }
}

impl std::error::Error for PoliciesError {}
