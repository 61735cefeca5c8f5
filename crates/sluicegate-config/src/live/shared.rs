//! The state shared by all clones: the policies in force, and how they are replaced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arc_swap::{ArcSwap, Guard};
use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;
use sluicegate_core::rule::KnownLimits;

use super::changes::Changes;
use super::event::{Event, report};
use super::file::{File, Seen};
#[cfg(feature = "watch")]
use super::glimpse::Glimpse;
use crate::compile::Policies;
use crate::document::Document;
use crate::source::{Diagnostic, PolicyError};

pub(super) struct Shared {
    in_force: ArcSwap<Policies>,
    file: Option<File>,
    /// Locked while policies are replaced.
    last: Mutex<Last>,
    listeners: RwLock<Vec<Listener>>,
    /// Whether the last file was not put in force.
    is_stale: AtomicBool,
    #[cfg(feature = "throttle")]
    throttle: super::throttle::Made,
}

type Listener = Arc<dyn Fn(&Event) + Send + Sync>;
type Check = Box<dyn Fn(&Limit) -> Result<(), LimitError> + Send>;

/// The last file that was read.
struct Last {
    /// The document of the policies in force.
    document: Option<Document>,
    /// What was found at the path, valid or not.
    seen: Option<Seen>,
    check: Option<Check>,
}

impl Shared {
    pub(super) fn open(file: File) -> Result<Self, PolicyError> {
        let seen = file.look();
        let (document, policies) = file.compile(&seen)?;
        let last = Last { document: Some(document), seen: Some(seen), check: None };
        Ok(Self::new(policies, Some(file), last))
    }

    pub(super) fn of(policies: Policies) -> Self {
        Self::new(policies, None, Last { document: None, seen: None, check: None })
    }

    fn new(policies: Policies, file: Option<File>, last: Last) -> Self {
        let in_force = ArcSwap::from_pointee(policies);
        Self {
            in_force,
            file,
            last: Mutex::new(last),
            listeners: RwLock::default(),
            is_stale: AtomicBool::new(false),
            #[cfg(feature = "throttle")]
            throttle: super::throttle::Made::default(),
        }
    }

    /// The policies in force. Each request loads them once.
    pub(super) fn in_force(&self) -> Guard<Arc<Policies>> {
        self.in_force.load()
    }

    pub(super) fn policies(&self) -> Arc<Policies> {
        self.in_force.load_full()
    }

    /// The throttle of the policies in force, which is made at the first call.
    #[cfg(feature = "throttle")]
    pub(super) fn throttle(&self) -> Option<crate::FileThrottle> {
        // No reload comes between the policies and their throttle.
        let _last = self.last();
        self.throttle.of(&self.policies())
    }

    #[cfg(feature = "watch")]
    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    pub(super) fn listen(&self, listener: Listener) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(super) fn tell(&self, event: &Event) {
        let is_end = match event {
            Event::Reloaded(_) => self.is_stale.swap(false, Ordering::Relaxed),
            Event::Refused(_) | Event::Missing(_) => {
                self.is_stale.store(true, Ordering::Relaxed);
                false
            }
            Event::Unwatched(_) => false,
        };
        report(event, is_end);
        // A listener may add a listener.
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        listeners.iter().for_each(|listener| listener(event));
    }

    pub(super) fn keep(&self, check: Check) -> Result<(), PolicyError> {
        let mut last = self.last();
        last.check = Some(check);
        last.must_keep(&self.in_force())
    }

    pub(super) fn replace(&self, policies: Policies) -> Result<Changes, PolicyError> {
        let mut last = self.last();
        last.must_keep(&policies)?;
        #[cfg(feature = "throttle")]
        self.throttle.change(None, &policies)?;
        let changes = self.put_in_force(&mut last, None, policies);
        drop(last);
        self.tell(&Event::Reloaded(changes.clone()));
        Ok(changes)
    }

    pub(super) fn reload(&self) -> Result<Changes, PolicyError> {
        let file = self.read_from()?;
        let last = self.last();
        let seen = file.look();
        self.follow(file, last, seen)
    }

    pub(super) fn pending(&self) -> Result<Changes, PolicyError> {
        let file = self.read_from()?;
        let last = self.last();
        let (document, policies) = file.compile(&file.look())?;
        last.must_keep(&policies)?;
        let old = self.policies();
        Ok(Changes::between((last.document.as_ref(), &old), (Some(&document), &policies)))
    }

    fn read_from(&self) -> Result<&File, PolicyError> {
        let file = self.file.as_ref();
        file.ok_or_else(|| Diagnostic::new("", "these policies were not read from a file").into())
    }

    /// Reloads the file if its text differs from the last one read and has settled.
    #[cfg(feature = "watch")]
    pub(super) fn reload_if_changed(&self, glimpse: &mut Option<Glimpse<Seen>>) {
        let Some(file) = &self.file else { return };
        let last = self.last();
        let seen = file.look();
        let is_known = last.seen.as_ref() == Some(&seen);
        if let Some(seen) = Glimpse::settled(glimpse, seen, is_known) {
            // Errors are reported as events.
            let _ = self.follow(file, last, seen);
        }
    }

    fn follow(
        &self,
        file: &File,
        mut last: MutexGuard<'_, Last>,
        seen: Seen,
    ) -> Result<Changes, PolicyError> {
        let compiled = file.compile(&seen).and_then(|(document, policies)| {
            last.must_keep(&policies)?;
            #[cfg(feature = "throttle")]
            {
                let changed = self.throttle.change(Some(&document), &policies);
                changed.map_err(|problem| PolicyError::from(problem).in_file(file.name()))?;
            }
            Ok(self.put_in_force(&mut last, Some(document), policies))
        });
        let event = match &compiled {
            Ok(changes) => Event::Reloaded(changes.clone()),
            Err(_) if seen == Seen::Missing => Event::Missing(file.path().to_owned()),
            Err(problems) => Event::Refused(problems.clone()),
        };
        last.seen = Some(seen);
        drop(last);
        self.tell(&event);
        compiled
    }

    fn put_in_force(
        &self,
        last: &mut Last,
        document: Option<Document>,
        policies: Policies,
    ) -> Changes {
        let old = self.policies();
        let before = (last.document.as_ref(), &*old);
        let changes = Changes::between(before, (document.as_ref(), &policies));
        self.in_force.store(Arc::new(policies));
        last.document = document;
        changes
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
