//! Policies that can be replaced while the service runs.

mod changes;
mod file;
#[cfg(feature = "watch")]
mod notifier;
#[cfg(test)]
mod tests;
#[cfg(feature = "watch")]
mod watch;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arc_swap::{ArcSwap, Guard};
use sluicegate_core::adapter::{Charge, Hold};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::LimitError;
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::Store;
use sluicegate_core::{Decision, Limit, Rejection};
use sluicegate_llm::Dialect;

pub use self::changes::{Changes, Event, LimitChange};
#[cfg(feature = "watch")]
pub(crate) use self::watch::{Follow, Snapshot};
#[cfg(feature = "watch")]
pub use self::watch::{WatchError, Watching};

use self::file::{Contents, File};
use crate::compile::{BLOCKED, Policies};
use crate::document::{Document, located};
use crate::environment::Environment;
use crate::policy_file::PolicyFile;
use crate::source::{Diagnostic, DocumentPath, PolicyError};
#[cfg(feature = "throttle")]
use crate::throttle::{FileThrottle, ThrottleOnce};

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
        let contents = file.contents();
        let (document, policies) = file.compile(&contents)?;
        let last = Last { document: Some(document), contents: Some(contents), check: None };
        Ok(Self::new(policies, Some(file), last))
    }

    /// Policies that do not come from a file. [`replace`](Self::replace) replaces them.
    pub fn of(policies: Policies) -> Self {
        Self::new(policies, None, Last { document: None, contents: None, check: None })
    }

    fn new(policies: Policies, file: Option<File>, last: Last) -> Self {
        let shared = Shared {
            in_force: ArcSwap::from_pointee(policies),
            file,
            last: Mutex::new(last),
            listeners: RwLock::default(),
            is_stale: AtomicBool::new(false),
            settles_at_head: AtomicBool::new(false),
            is_proxied: AtomicBool::new(false),
            #[cfg(feature = "throttle")]
            throttle: ThrottleOnce::default(),
        };
        Self { shared: Arc::new(shared) }
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
        let file = self.file()?;
        let last = self.last();
        // Read under the lock, or an older text could be put in force after a newer one.
        let contents = file.contents();
        self.follow(file, last, contents)
    }

    /// What [`reload`](Self::reload) would change. Nothing comes into force, and no event is reported.
    ///
    /// # Errors
    ///
    /// Everything that would keep the file from coming into force.
    pub fn pending(&self) -> Result<Changes, PolicyError> {
        let file = self.file()?;
        let last = self.last();
        let (document, policies) = file.compile(&file.contents())?;
        self.must_fit(&last, Some(&document), &policies)
            .map_err(|error| error.in_file(file.name()))?;
        let old = self.policies();
        Ok(Changes::between((last.document.as_ref(), &old), (Some(&document), &policies)))
    }

    /// Puts other policies in force. Returns which limits changed.
    ///
    /// # Errors
    ///
    /// Fails if the running service cannot take the policies up. A store named by [`kept_by`](Self::kept_by) cannot keep
    /// one of the limits, for instance, or [`throttle`](Self::throttle) has returned `None` and the policies have one.
    pub fn replace(&self, policies: Policies) -> Result<Changes, PolicyError> {
        let mut last = self.last();
        let changes = self.put_in_force(&mut last, None, policies)?;
        drop(last);
        self.publish(&Event::Reloaded(changes.clone()));
        Ok(changes)
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<Policies> {
        self.shared.in_force.load_full()
    }

    /// Calls `listener` with each event from now on, on the thread of the event. The listener may use this value.
    /// It should be fast, because the next change waits for it.
    pub fn on_event(&self, listener: impl Fn(&Event) + Send + Sync + 'static) {
        let listener: Listener = Arc::new(listener);
        self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// From now on, refuses policies with a limit that `store` cannot keep. A layer checks only the policies that
    /// it starts with.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot keep one of the limits in force.
    pub fn kept_by<S: Store + Send + Sync + 'static>(&self, store: S) -> Result<(), PolicyError> {
        let mut last = self.last();
        last.check = Some(Box::new(move |limit| store.check(limit)));
        last.must_keep(&self.in_force())
    }

    /// A rejection for a layer, which treats each refused request as the policies in force say.
    pub fn rejection(&self) -> Rejection {
        let live = self.clone();
        Rejection::from_fn(move |decision| rejection(&live.in_force(), decision))
    }

    /// The throttle of the policies, `[throttle]`; `None` if they have none. Each call
    /// returns the same throttle.
    ///
    /// Once it has been made, a reload changes it while requests wait and run. A file without it, or with what cannot
    /// change, such as another kind of capacity, is refused: the old policies stay in force. So is a file that has one
    /// after this has returned `None`, because the service runs without its layer.
    #[cfg(feature = "throttle")]
    pub fn throttle(&self) -> Option<FileThrottle> {
        // No reload comes between the policies and their throttle.
        let _last = self.last();
        self.shared.throttle.of(&self.policies())
    }

    /// For a proxy that runs by these policies: from now on, a file without `[listen]` or `[upstream]` is refused.
    #[doc(hidden)]
    pub fn proxied(&self) {
        let _last = self.last();
        self.shared.is_proxied.store(true, Ordering::Relaxed);
    }

    /// Until when a served request holds its place in limits of concurrency, for the `hold_until` of a layer. A
    /// layer reads it once: a reload that changes the setting reports it but has no effect on the layer. Once this has
    /// returned [`Hold::Head`], rules that settle by tokens are refused, because the layer settles too early.
    pub fn hold_until(&self) -> Hold {
        // No reload comes between the policies and what the layer reads of them.
        let _last = self.last();
        let hold = self.in_force().hold_until();
        if hold == Hold::Head {
            self.shared.settles_at_head.store(true, Ordering::Relaxed);
        }
        hold
    }

    /// Header fields and errors as an API of language models has them, for the `dialect` and the `respond` of a layer.
    /// `None` if the policies have no `[dialect]`. A layer reads it once, as it does with
    /// [`hold_until`](Self::hold_until).
    pub fn dialect(&self) -> Option<Dialect> {
        self.in_force().dialect().cloned()
    }

    /// Reloads the file when it changes, until the returned value is dropped.
    ///
    /// The directory is watched instead of the file, because editors rename a new file over the old one, and
    /// Kubernetes swaps the directory of a mounted `ConfigMap`. On Linux and Windows, the directories above it are watched
    /// too, because one of them may be renamed. Changes that happen close together are one reload. A
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
        match self.shared.file {
            Some(_) => Watching::begin(self.clone()),
            None => Err(WatchError::without_file()),
        }
    }

    /// The policies in force. Each request loads them once.
    fn in_force(&self) -> Guard<Arc<Policies>> {
        self.shared.in_force.load()
    }

    fn file(&self) -> Result<&File, PolicyError> {
        let file = self.shared.file.as_ref();
        file.ok_or_else(|| Diagnostic::new("", "these policies were not read from a file").into())
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.shared.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what was found at the path in force, and publishes what became of it.
    fn follow(
        &self,
        file: &File,
        mut last: MutexGuard<'_, Last>,
        contents: Contents,
    ) -> Result<Changes, PolicyError> {
        let compiled = file.compile(&contents).and_then(|(document, policies)| {
            let changes = self.put_in_force(&mut last, Some(document), policies);
            changes.map_err(|error| error.in_file(file.name()))
        });
        let event = match &compiled {
            Ok(changes) => Event::Reloaded(changes.clone()),
            Err(_) if contents == Contents::Missing => Event::Missing(file.path().to_owned()),
            Err(problems) => Event::Refused(problems.clone()),
        };
        last.contents = Some(contents);
        // A listener may reload, so nothing is locked while it runs.
        drop(last);
        self.publish(&event);
        compiled
    }

    /// Checks whether the running service can take the policies up.
    fn must_fit(
        &self,
        last: &Last,
        document: Option<&Document>,
        policies: &Policies,
    ) -> Result<(), PolicyError> {
        last.must_keep(policies)?;
        #[cfg(feature = "throttle")]
        self.shared.throttle.check(document, policies)?;
        let root = DocumentPath::Root;
        let is_proxied = self.shared.is_proxied.load(Ordering::Relaxed);
        let removed = [
            ("listen", is_proxied && policies.listen().is_none()),
            ("upstream", is_proxied && policies.upstream().is_none()),
        ];
        // A file without them is checked for another program than the proxy that runs.
        if let Some((section, _)) = removed.into_iter().find(|(_, is_removed)| *is_removed) {
            let message = format!("`[{section}]` cannot be removed while the proxy runs");
            return Err(located(document, &root.name(section), &message).into());
        }
        match policies.tokens_settled_by() {
            Some(rule) if self.shared.settles_at_head.load(Ordering::Relaxed) => {
                let path = root.name("rules");
                let path = path.index(rule);
                Err(located(document, &path.name("settle"), SETTLES_AT_HEAD).into())
            }
            _ => Ok(()),
        }
    }

    /// Puts policies in force that the running service can take up.
    fn put_in_force(
        &self,
        last: &mut Last,
        document: Option<Document>,
        policies: Policies,
    ) -> Result<Changes, PolicyError> {
        self.must_fit(last, document.as_ref(), &policies)?;
        #[cfg(feature = "throttle")]
        self.shared.throttle.change(document.as_ref(), &policies)?;
        let old = self.policies();
        let before = (last.document.as_ref(), &*old);
        let changes = Changes::between(before, (document.as_ref(), &policies));
        self.shared.in_force.store(Arc::new(policies));
        last.document = document;
        Ok(changes)
    }

    /// Passes an event to the log and to all listeners.
    fn publish(&self, event: &Event) {
        let is_stale = &self.shared.is_stale;
        let is_end = match event {
            Event::Reloaded(_) => is_stale.swap(false, Ordering::Relaxed),
            Event::Refused(_) | Event::Missing(_) => {
                is_stale.store(true, Ordering::Relaxed);
                false
            }
            Event::Unwatched(_) => false,
        };
        event.log(is_end);
        // A copy, because a listener may add a listener.
        let listeners = self.shared.listeners.read();
        let listeners = listeners.unwrap_or_else(PoisonError::into_inner).clone();
        listeners.iter().for_each(|listener| listener(event));
    }
}

impl<V: View> Rule<V> for Live {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        self.in_force().charge(view, charge)
    }
}

impl KnownLimits for Live {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.in_force().each_limit(each);
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("policies", &self.policies()).finish_non_exhaustive()
    }
}

const SETTLES_AT_HEAD: &str = "the tokens of an answer are known at the end of its body, and the running service settles before, as \
                               `hold_until = \"head\"` said when it started: start it anew";

/// The state shared by all clones.
struct Shared {
    in_force: ArcSwap<Policies>,
    file: Option<File>,
    /// Locked while policies are replaced.
    last: Mutex<Last>,
    listeners: RwLock<Vec<Listener>>,
    /// Whether the last file was not put in force.
    is_stale: AtomicBool,
    /// Whether a layer was told to settle at the head of an answer.
    settles_at_head: AtomicBool,
    /// Whether a proxy runs by the policies.
    is_proxied: AtomicBool,
    #[cfg(feature = "throttle")]
    throttle: ThrottleOnce,
}

type Listener = Arc<dyn Fn(&Event) + Send + Sync>;
type Check = Box<dyn Fn(&Limit) -> Result<(), LimitError> + Send>;

/// The last file that was read.
struct Last {
    /// The document of the policies in force.
    document: Option<Document>,
    /// What was found at the path, valid or not.
    contents: Option<Contents>,
    check: Option<Check>,
}

impl Last {
    fn must_keep(&self, policies: &Policies) -> Result<(), PolicyError> {
        let Some(check) = &self.check else { return Ok(()) };
        let mut problems = Vec::new();
        policies.each_limit(&mut |limit| {
            if let Err(reason) = check(limit) {
                let what = format!("the store cannot keep the limit `{limit}`: {reason}");
                problems.push(Diagnostic::new("", what));
            }
        });
        PolicyError::of(problems).map_or(Ok(()), Err)
    }
}

/// The rejection of the limit that refused; if several refused, the strictest. A limit that the policies do not
/// know blocks.
pub(super) fn rejection(policies: &Policies, decision: &Decision) -> Rejection {
    let refusing = decision.statuses().filter(|status| status.refused);
    let spec = refusing.map(|status| {
        let name = status.limit.own_name();
        name.and_then(|name| policies.refused_by(name)).unwrap_or(&BLOCKED)
    });
    let strictest = spec.max_by_key(|refused| refused.strictness).unwrap_or(&BLOCKED);
    strictest.rejection.clone()
}
