//! Policies that can be replaced while the service runs.

#[cfg(feature = "watch")]
mod bell;
mod changes;
#[cfg(feature = "watch")]
mod directories;
mod event;
mod file;
#[cfg(feature = "watch")]
mod glimpse;
mod refused;
mod shared;
#[cfg(test)]
mod tests;
#[cfg(feature = "throttle")]
mod throttle;
#[cfg(feature = "watch")]
mod watch;

use std::fmt;
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Hold};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::response::Dialect;
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, Rejection};

pub use self::changes::{Changes, LimitChange};
pub use self::event::Event;
#[cfg(feature = "watch")]
pub(crate) use self::glimpse::Glimpse;
#[cfg(feature = "watch")]
pub(crate) use self::watch::Follow;
#[cfg(feature = "watch")]
pub use self::watch::{WatchError, Watching};

use self::file::File;
use self::shared::Shared;
use crate::compile::Policies;
use crate::environment::Environment;
use crate::policy_file::PolicyFile;
use crate::source::PolicyError;

/// Policies that can be replaced while the service runs. A `Live` is a rule; its clones share the policies.
///
/// Each request is charged by one complete set of policies. A reload keeps what was spent: unchanged limits keep
/// counting, and limits with new numbers carry over what was spent if their name and algorithm stay the same.
///
/// If the file is broken, empty or missing, the old policies stay in force, and an [`Event`] reports the error.
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

    /// Policies that do not come from a file. [`replace`](Self::replace) replaces them.
    pub fn of(policies: Policies) -> Self {
        Self { shared: Arc::new(Shared::of(policies)) }
    }

    /// Reads the file again and puts its policies in force. Returns what changed.
    ///
    /// With the feature `watch`, [`watch`](Self::watch) does this for each change of the file. Call this for other
    /// reasons to reload: a signal, a new GeoIP database, a file on a network drive.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, or that there is no file. The old policies stay in force.
    pub fn reload(&self) -> Result<Changes, PolicyError> {
        self.shared.reload()
    }

    /// What [`reload`](Self::reload) would change. Nothing comes into force, and no event is reported.
    ///
    /// # Errors
    ///
    /// Everything that would keep the file from coming into force.
    pub fn pending(&self) -> Result<Changes, PolicyError> {
        self.shared.pending()
    }

    /// Puts other policies in force. Returns which limits changed.
    ///
    /// # Errors
    ///
    /// Fails if a store named by [`kept_by`](Self::kept_by) cannot keep one of the limits.
    pub fn replace(&self, policies: Policies) -> Result<Changes, PolicyError> {
        self.shared.replace(policies)
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<Policies> {
        self.shared.policies()
    }

    /// Calls `listener` with each event from now on, on the thread of the event. The listener may use this value.
    /// It should be fast, because the next change waits for it.
    pub fn on_event(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        self.shared.listen(Arc::new(listener));
    }

    /// From now on, refuses policies with a limit that `store` cannot keep. A layer checks only the policies that
    /// it starts with.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot keep one of the limits in force.
    pub fn kept_by<S: Store + Send + Sync + 'static>(&self, store: S) -> Result<(), PolicyError> {
        self.shared.keep(Box::new(move |limit| store.check(limit)))
    }

    /// A rejection for a layer, which treats each refused request as the policies in force say.
    pub fn rejection(&self) -> Rejection {
        let live = self.clone();
        Rejection::from_fn(move |decision| refused::rejection(&live.shared.in_force(), decision))
    }

    /// The throttle of the policies, `[throttle]`; `None` if they have none. Each call
    /// returns the same throttle.
    ///
    /// Once it has been made, a reload changes it while requests wait and run. A file without it, or with what cannot
    /// change, such as another kind of capacity, is refused: the old policies stay in force.
    #[cfg(feature = "throttle")]
    pub fn throttle(&self) -> Option<crate::FileThrottle> {
        self.shared.throttle()
    }

    /// Until when a served request holds its place in limits of concurrency, for the `hold_until` of a layer. A
    /// layer reads it once: a reload that changes the setting reports it but has no effect on the layer.
    pub fn hold_until(&self) -> Hold {
        self.shared.in_force().hold_until()
    }

    /// Header fields and errors as an API of language models has them, for the `dialect` and the `respond` of a layer.
    /// `None` if the policies have no `[dialect]`. A layer reads it once, as it does with
    /// [`hold_until`](Self::hold_until).
    pub fn dialect(&self) -> Option<Dialect> {
        self.shared.in_force().dialect().cloned()
    }

    /// Reloads the file when it changes, until the returned value is dropped.
    ///
    /// The directory is watched instead of the file, because editors rename a new file over the old one, and
    /// Kubernetes swaps the directory of a mounted `ConfigMap`. Changes that happen close together are one reload. A
    /// file with the same text is not reloaded.
    ///
    /// Replace the file by renaming a new one over it, if you can. When a program writes in place, the file may be
    /// read half-written, and half of a TOML file can be a valid file with fewer rules. So a new text takes effect
    /// only after it was read twice, 200 ms apart. On Linux, a program that has written to the file and not closed
    /// it delays the reload by up to 10 seconds. A program that closes half of a file and continues later cannot be
    /// detected. In JSON, half of a file is never valid.
    ///
    /// The file must be a regular file of at most 32 MiB. A pipe, device or directory at the path is
    /// [refused](Event::Refused).
    ///
    /// # Errors
    ///
    /// Fails if the system cannot watch the directory, or if there is no file.
    #[cfg(feature = "watch")]
    pub fn watch(&self) -> Result<Watching, WatchError> {
        Watching::of(&self.shared)
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
