//! The keys that are refused most.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi 2005) runs in each of eight parts under a small lock of its
//! own, with twice as many counters as keys are shown. Threads take the parts in turns and never wait for
//! one. A refusal that finds four parts taken is counted as missed, and every upper bound rises by one: the
//! bounds stay bounds.

mod snapshot;
mod summary;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

pub use self::snapshot::{MostRefused, RefusedKey};

use self::summary::Summary;
use crate::clock::Clock;
use crate::key::hash::KeyHash;
use crate::key::{KeyBuf, KeySecret};
use crate::limit::{Decision, Limit};
use crate::observe::by_policy::ByPolicy;
use crate::observe::peaks::by_limit::{LimitPeaks, PeaksByLimit};
use crate::observe::show::ShowKeys;
use crate::store::charge::Charge;

/// The largest number of keys that can be requested. Searching their counters takes time, during refusals.
const MOST_KEYS: usize = 1_024;

/// Counters in each part, for each key that is requested. There are enough that a key refused in only one part is not
/// missed in the whole.
const SPARE: usize = 2;

/// Parts, so that threads that refuse at the same time do not meet.
const PARTS: usize = 8;

/// The number of parts that a refusal tries before it is counted as missed.
const TRIES: usize = 4;

/// Notes which keys are refused most, for each policy, in bounded memory: for an operator of a service that is being
/// flooded.
///
/// Layers and limiters report every key that a limit refuses, also if the request is then degraded, redirected or, on
/// trial, forwarded. Other admitted requests do not touch it. A policy is the name of a limit. 64 policies are kept
/// apart, and all others form one more.
///
/// ```
/// use sluicegate::Limit;
/// use sluicegate::key::KeyBuf;
/// use sluicegate::observe::Watch;
///
/// let watch = Watch::new(32);
/// let limit = Limit::per_minute(100).named("api");
/// // What a layer does:
/// (0..3).for_each(|_| watch.refused(&limit, &KeyBuf::of("alice")));
///
/// let api = &watch.snapshot()[0];
/// assert_eq!((api.policy.as_str(), api.refusals), ("api", 3));
/// assert_eq!((api.keys[0].who.as_str(), api.keys[0].at_least), ("alice", 3));
/// ```
///
/// # What the numbers mean
///
/// Of each policy, every key with more than one in n of its refusals is shown, where n is the number that the watch
/// was [made](Self::new) for, by the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, ICDT 2005). The number
/// of refusals of a key is between `at_least` and `at_most`. The two are equal as long as there were no more keys
/// than counters.
///
/// A refusal never waits for a watch. If other threads write in four parts, it only counts as
/// [`missed`](MostRefused::missed). Since it may have been a refusal of any key, it is included in every key's
/// `at_most`; "one in n" then applies to the other refusals. That takes threads that were stopped while they wrote:
/// many more threads than cores, which do nothing else.
///
/// # What it costs
///
/// A refusal takes some tens of nanoseconds longer. A watch takes up to 2 kB for each requested key and each policy
/// that has refused.
///
/// Clones share what they note.
#[derive(Clone)]
pub struct Watch {
    notes: Arc<Notes>,
    show: ShowKeys,
}

struct Notes {
    keys: usize,
    hash: KeyHash,
    policies: ByPolicy<Policy>,
    peaks: Option<PeaksByLimit>,
}

impl Notes {
    fn new(keys: usize, peaks: Option<PeaksByLimit>) -> Self {
        Self { keys, hash: KeyHash::new(), policies: ByPolicy::new(), peaks }
    }
}

struct Policy {
    parts: Box<[Part]>,
    missed: AtomicU64,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Part(Mutex<Summary>);

impl Watch {
    /// Shows up to `keys` keys of each policy.
    ///
    /// # Panics
    ///
    /// If that is zero, or more than 1,024.
    #[track_caller]
    pub fn new(keys: usize) -> Self {
        assert!(
            (1..=MOST_KEYS).contains(&keys),
            "a watch shows from 1 to {MOST_KEYS} keys of each policy, not {keys}"
        );
        Self { notes: Arc::new(Notes::new(keys, None)), show: ShowKeys::Shown }
    }

    /// Shows a digest of each key instead of the key. It tells keys apart, and means nothing without `secret`.
    /// Existing clones are not changed.
    #[must_use]
    pub fn redacted(self, secret: &[u8]) -> Self {
        Self { show: ShowKeys::Digest(KeySecret::new(secret)), ..self }
    }

    /// Notes the highest count of each key in a window of its limit too, admitted or not: whom another limit would refuse. What was
    /// noted before stays with existing clones.
    ///
    /// A decision takes longer by a hash of its key, a lock that nobody waits for, and a look into a map. At most about `keys` keys
    /// of a limit are followed, of 64 limits, and each takes about 100 bytes. If there are more keys, those that are followed
    /// are a sample by hash. Limits of concurrency, and those that are settled by the response, are left out.
    #[must_use]
    pub fn with_peaks(self, keys: usize) -> Self {
        let notes = Notes::new(self.notes.keys, Some(PeaksByLimit::new(keys)));
        Self { notes: Arc::new(notes), ..self }
    }

    /// The highest counts of keys, for each limit in the order of their first requests. Empty without
    /// [`with_peaks`](Self::with_peaks).
    pub fn peaks(&self) -> Vec<LimitPeaks> {
        self.notes.peaks.as_ref().map(PeaksByLimit::snapshot).unwrap_or_default()
    }

    /// Notes what a request asks for, if it notes that.
    #[inline]
    pub(crate) fn saw_request(&self, clock: &Clock, charge: &Charge) {
        let Some(peaks) = &self.notes.peaks else { return };
        peaks.note(charge, clock.now());
    }

    /// Whether it shows digests instead of keys.
    pub fn is_redacted(&self) -> bool {
        !matches!(self.show, ShowKeys::Shown)
    }

    /// Notes that `limit` refused `key`: for adapters, and for services that call a store themselves.
    pub fn refused(&self, limit: &Limit, key: &KeyBuf) {
        let keys = self.notes.keys;
        let policy = &self.notes.policies.of(limit, |_| Policy::new(keys)).kept;
        policy.add(self.notes.hash.of(0, key), key);
    }

    /// Notes the keys that `decision` about `charge` refuses, or would refuse if the limit were not on trial.
    pub fn saw(&self, decision: &Decision, charge: &Charge) {
        for (status, debit) in decision.statuses().zip(charge.debits()) {
            if status.refused || status.shadowed {
                self.refused(&debit.limit, &debit.key);
            }
        }
    }

    /// The keys that were refused most since the watch was made or [cleared](Self::clear), for each policy in the
    /// order of their first refusals. The most refused key comes first.
    pub fn snapshot(&self) -> Vec<MostRefused> {
        let policies = self.notes.policies.iter();
        policies
            .map(|policy| {
                let parts = policy.kept.parts().map(|part| part.clone()).collect::<Vec<_>>();
                let missed = policy.kept.missed.load(Ordering::Relaxed);
                MostRefused::of(&policy.name, &parts, missed, self.notes.keys, &self.show)
            })
            .collect()
    }

    /// Forgets everything, for example to get a snapshot of the last minute.
    pub fn clear(&self) {
        self.notes.peaks.iter().for_each(PeaksByLimit::clear);
        for policy in self.notes.policies.iter() {
            policy.kept.missed.store(0, Ordering::Relaxed);
            policy.kept.parts().for_each(|mut part| part.clear());
        }
    }
}

impl Policy {
    fn new(keys: usize) -> Self {
        let part = || Part(Mutex::new(Summary::new(SPARE * keys)));
        let parts = std::iter::repeat_with(part).take(PARTS).collect();
        Self { parts, missed: AtomicU64::new(0) }
    }

    fn add(&self, hash: u64, key: &KeyBuf) {
        let first = own_part();
        for part in first..first + TRIES {
            let mut summary = match self.parts[part % PARTS].0.try_lock() {
                Ok(summary) => summary,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            return summary.add(hash, key);
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// The next part to assign. Parts are assigned in turn.
    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Summary>> {
        self.parts.iter().map(|part| part.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The part that this thread writes to first. Threads get parts in turn at their first refusal.
fn own_part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(PARTS) };
    }
    OWN.with(|own| {
        if own.get() == PARTS {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % PARTS);
        }
        own.get()
    })
}

/// Does not show keys.
impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("keys", &self.notes.keys)
            .field("policies", &self.notes.policies)
            .finish_non_exhaustive()
    }
}
