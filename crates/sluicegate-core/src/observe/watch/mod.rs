//! Who is refused most.
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
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use foldhash::fast::RandomState;

pub use self::snapshot::{MostRefused, RefusedKey};

use self::summary::Summary;
use crate::key::{KeyBuf, KeySecret};
use crate::limit::{Decision, Limit};
use crate::observe::by_policy::ByPolicy;
use crate::observe::show::ShowKeys;
use crate::store::charge::Charge;

/// Most keys that can be asked for: looking through their counters takes time, and happens at refusals.
const MOST_KEYS: usize = 1_024;

/// Counters for each key that is asked for, in each part: of those who are refused in one part, no one
/// comes so often that he is left out of the whole.
const SPARE: usize = 2;

/// Parts, so that threads that refuse at the same time do not meet.
const PARTS: usize = 8;

/// Parts that a refusal is offered to before it is left out.
const TRIES: usize = 4;

/// Notes who is refused most, for each policy, in bounded memory: what an operator looks at while a
/// service is being flooded.
///
/// Layers and limiters tell it which keys limits refuse: also of requests that they then degrade, redirect or,
/// on trial, let pass. Other admitted requests do not touch it. A policy is a limit's name;
/// 64 are told apart, and the others are one more.
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
/// Of a policy, everybody is shown who has more than one in n of its refusals, where n is what the watch
/// was [made](Self::new) for, by the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, ICDT 2005).
/// How often somebody was refused is between `at_least` and `at_most`; the two are equal as long as there
/// were no more keys than counters.
///
/// A refusal never waits for a watch. One that finds others writing at four places leaves only that it was
/// there: it is in [`missed`](MostRefused::missed), and, since it can have been anybody's, in everybody's
/// `at_most`; whoever has more than one in n is then told of the others. That takes threads that were stopped
/// in the middle of it: many more of them than cores, which do nothing else.
///
/// # What it costs
///
/// A refusal takes some tens of nanoseconds longer; up to 2 kB are taken up for each key that is asked for and
/// each policy that has refused.
///
/// Clones note together.
#[derive(Clone)]
pub struct Watch {
    notes: Arc<Notes>,
    show: ShowKeys,
}

struct Notes {
    keys: usize,
    hash: RandomState,
    policies: ByPolicy<Policy>,
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
    /// When that is none, or more than 1,024.
    #[track_caller]
    pub fn new(keys: usize) -> Self {
        assert!(
            (1..=MOST_KEYS).contains(&keys),
            "a watch shows from 1 to {MOST_KEYS} keys of each policy, not {keys}"
        );
        let notes = Notes { keys, hash: RandomState::default(), policies: ByPolicy::new() };
        Self { notes: Arc::new(notes), show: ShowKeys::Shown }
    }

    /// Shows a digest of each key instead of who it is: one tells keys apart, and means nothing to
    /// whoever does not know `secret`. Clones made before go on showing what they showed.
    #[must_use]
    pub fn redacted(self, secret: &[u8]) -> Self {
        Self { show: ShowKeys::Digest(KeySecret::new(secret)), ..self }
    }

    /// Notes that `limit` refused `key`: for adapters, and for services that ask a store themselves.
    pub fn refused(&self, limit: &Limit, key: &KeyBuf) {
        let keys = self.notes.keys;
        let policy = &self.notes.policies.of(limit, |_| Policy::new(keys)).kept;
        policy.add(self.notes.hash.hash_one(key), key);
    }

    /// Notes the keys that `decision` about `charge` refuses, or would refuse were the limit not on trial.
    pub fn saw(&self, decision: &Decision, charge: &Charge) {
        for (status, debit) in decision.statuses().zip(charge.debits()) {
            if status.refused || status.shadowed {
                self.refused(&debit.limit, &debit.key);
            }
        }
    }

    /// Who was refused most, for each policy in the order in which they first refused: the most refused
    /// first, since the watch was made or [cleared](Self::clear).
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

    /// Begins anew: for a snapshot of the last minute, say, rather than of all time.
    pub fn clear(&self) {
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

    /// One after the other.
    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Summary>> {
        self.parts.iter().map(|part| part.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The part that this thread writes to first: threads take turns when they first come.
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

/// Shows nobody.
impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("keys", &self.notes.keys)
            .field("policies", &self.notes.policies)
            .finish_non_exhaustive()
    }
}
