//! Policies that are replaced while they serve.

#[cfg(feature = "watch")]
mod bell;
mod changes;
#[cfg(feature = "watch")]
mod directories;
mod event;
mod file;
mod refused;
mod shared;
#[cfg(test)]
mod tests;
#[cfg(feature = "watch")]
mod watch;

use std::fmt;
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Hold};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, Rejection};

pub use self::changes::{Changes, LimitChange};
pub use self::event::Event;
#[cfg(feature = "watch")]
pub use self::watch::{WatchError, Watching};

use self::file::File;
use self::shared::Shared;
use crate::compile::Policies;
use crate::environment::Environment;
use crate::policy_file::PolicyFile;
use crate::source::PolicyError;

/// Policies that are replaced while they serve: a rule, cheap to clone, whose clones are all replaced
/// at once.
///
/// Each request sees one configuration, whole: the one that is in force when it is charged. What is
/// spent stays: a limit that did not change goes on counting, and one whose numbers changed keeps what
/// was spent, as long as its name and its algorithm stay.
///
/// A file that is broken, empty or gone changes nothing: the policies that are in force serve on, and
/// an [`Event`] says what is wrong.
///
/// ```no_run
/// use sluicegate_config::{Environment, Live};
///
/// let policies = Live::open("policies.toml", Environment::new())?;
/// policies.on_event(|event| eprintln!("{event}"));
/// let watching = policies.watch()?;
/// // RateLimitLayer::new(policies.clone()).rejection(policies.rejection())
/// # drop(watching);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Live {
    shared: Arc<Shared>,
}

impl Live {
    /// Reads the policies in a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, or that it cannot be read.
    pub fn open(
        file: impl Into<PolicyFile>,
        environment: Environment,
    ) -> Result<Self, PolicyError> {
        let file = File::new(file.into(), environment)?;
        Ok(Self { shared: Arc::new(Shared::open(file)?) })
    }

    /// Policies that were made otherwise, and are replaced by [`replace`](Self::replace).
    pub fn of(policies: Policies) -> Self {
        Self { shared: Arc::new(Shared::of(policies)) }
    }

    /// Reads the file again, and puts it in force between two requests; says what changed.
    ///
    /// [`watch`](Self::watch) does that by itself. This is for what is not seen from here: a signal, a
    /// change in a database of places, a file on a network.
    ///
    /// # Errors
    ///
    /// What is wrong with the file; or that there is none, in policies that were made in code. Then the
    /// policies that are in force serve on.
    pub fn reload(&self) -> Result<Changes, PolicyError> {
        self.shared.reload()
    }

    /// Puts other policies in force between two requests; says which limits changed.
    ///
    /// # Errors
    ///
    /// Where [`kept_by`](Self::kept_by) named a store that cannot keep one of their limits.
    pub fn replace(&self, policies: Policies) -> Result<Changes, PolicyError> {
        self.shared.replace(policies)
    }

    /// The policies that are in force.
    pub fn policies(&self) -> Arc<Policies> {
        self.shared.policies()
    }

    /// Calls `listener` with each event from now on, on the thread on which it happens. It may call
    /// this value, and should not take long: the next change waits for it.
    pub fn on_event(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.listen(Arc::new(listener));
    }

    /// Refuses policies with a limit that `store` cannot keep, from now on; a layer asks its store only
    /// about the policies that it begins with.
    ///
    /// # Errors
    ///
    /// When it cannot keep one of those that are in force.
    pub fn kept_by<S: Store + Send + Sync + 'static>(&self, store: S) -> Result<(), PolicyError> {
        self.shared.keep(Box::new(move |limit| store.check(limit)))
    }

    /// Does with refused requests what the policies in force say of the limit that refuses: for a
    /// layer's `rejection`.
    pub fn rejection(&self) -> Rejection {
        let live = self.clone();
        Rejection::from_fn(move |decision| refused::rejection(&live.shared.in_force(), decision))
    }

    /// Until when a served request holds its places, as the policies in force say it, for the `hold_until`
    /// of a layer. A layer is told once: a reload that changes it reports the setting, and has no effect on it.
    pub fn hold_until(&self) -> Hold {
        self.shared.in_force().hold_until()
    }

    /// Reloads the file when it changes, until the value that is returned is dropped.
    ///
    /// The directory is watched, not the file: an editor may write another file and rename it, and
    /// Kubernetes exchanges the directory that a link of a mounted `ConfigMap` leads through. Changes
    /// that come close together are one, and a file that says what it said before is none.
    ///
    /// Write another file and rename it, if you can. A program that writes in place may be read half-way,
    /// and half of a TOML or YAML file can be a valid file with fewer rules. So a changed text is put in
    /// force only once it is found twice, 200 ms apart; on Linux, a program that has written into the file
    /// and not closed it is waited for, for 10 seconds at most. A writer that closes half of a file and
    /// goes on later cannot be told from one that is done. JSON has no such halves: each is refused.
    ///
    /// At most 8 MiB of a regular file are read; a pipe, a device or a directory in its place is
    /// [refused](Event::Refused).
    ///
    /// # Errors
    ///
    /// When the system does not let directories be watched, or there is no file to watch.
    #[cfg(feature = "watch")]
    pub fn watch(&self) -> Result<Watching, WatchError> {
        Watching::begin(&self.shared)
    }
}

impl<V: View> Rule<V> for Live {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        self.shared.in_force().charge(view, charge)
    }
}

impl KnownLimits for Live {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.shared.in_force().each_limit(each);
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("policies", &self.policies()).finish_non_exhaustive()
    }
}
