//! The in-process store: a bounded table that tidies itself.

mod bucket;
mod build;
mod hash;
mod locate;
mod lock;
mod locked;
#[cfg(all(test, loom))]
mod loom;
mod moment;
#[cfg(feature = "metrics")]
mod record;
mod room;
mod row;
mod slim;
mod spend;
mod spend_slim;
mod sync;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

pub use self::build::MemoryBuilder;

use self::hash::Seed;
use self::locate::{Found, USUAL};
use self::locked::Find;
use self::moment::{Followed, Moment};
use self::row::{Four, Narrow, Wide};
use self::slim::Slim;
use self::spend::Passed;
use self::table::Table;
use crate::charge::{Charge, Owed};
use crate::clock::Clock;
use crate::key::KeyBuf;
use crate::limit::{Limit, LimitError, Mark, Outcome, Slot, State, decide, preview};
use crate::store::{Answer, Never, Store, StoreError};

/// Counts in the memory of this process, for a bounded number of keys.
///
/// # What it guarantees
///
/// - **Memory is bounded.** A table is made once and never grows: 38.4 bytes for each key of the capacity,
///   however long the keys are. There are three, each made when a layer or limiter that needs it is made, or
///   at first use: one for token buckets that refill by one in a whole number of microseconds (50 a second and
///   100 a minute do, 3 a second do not), one for all other limits of two words, and one for those that
///   remember more (a sliding log, a ban, a minimal gap, numbers that
///   may change). Sliding logs share a bound on the entries that they
///   hold.
/// - **What is limited stays limited.** A row is used for another key only when its own has fully
///   recovered, which is when it equals a fresh one. No flood of new keys can free a key that is
///   being limited, nor give any key more than its limit.
/// - **Nobody is refused because of strangers.** When there is no room, a new key is not counted: the
///   store answers [`StoreError::full`], which is not a refusal, and which the layer treats as it was
///   told to treat a failing store (by default the request passes). [`turned_away`](Self::turned_away)
///   counts each such answer. It takes more keys than the capacity that have spent and not recovered: in
///   tables for one to ten million keys, 1.49 times the capacity before it happened to the first one with
///   the usual token bucket, 1.06 times with other limits.
/// - **Nothing pauses.** There is no task, no thread, no resizing and no sweep: a decision looks at one
///   bucket of three or four rows, rarely at four buckets, and at 48 more at most where it has to make room
///   for a new key.
///   Refusals write nothing, so a flood from one client does not even occupy its row.
///
/// # How large to make it
///
/// As large as the number of keys that spend within the time that they take to recover, with the margin
/// that you want for a flood. A bucket that is spent to the last recovers in burst ÷ rate, a window when it
/// has ended, a sliding window when the next one has. With 100,000 clients an hour and a limit by the
/// minute, some thousand rows are in use at a time; with a limit by the day, all of them are. What a flood
/// of invented keys can do is fill the table, and from then on pass uncounted or be refused with 503, as
/// you choose; keys that nobody can invent (an address, an account that was checked further out) are
/// the better defence.
///
/// # How keys are told apart
///
/// By a 64-bit hash of the key and the limit, with a secret seed drawn when the store is made. That any two
/// of a million keys meet, and share a budget, has a chance of 1 in 37 million; among ten million, 1 in
/// 370,000. Nobody who does not know the seed can look for such a pair.
///
/// Clones are the same store.
///
/// ```
/// use tollgate_core::Memory;
///
/// let store = Memory::with_capacity(1_000_000);
/// assert_eq!(store.capacity(), 1_000_000);
/// ```
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// When it was made.
    base: u64,
    followed: Followed,
    seed: Seed,
    capacity: usize,
    /// Whether tables are made before they are used.
    is_eager: bool,
    /// Rows of one word, for most token buckets.
    slim: Table<Slim>,
    /// Rows of two words.
    narrow: Table<Four<Narrow>>,
    /// Rows of limits that remember more.
    wide: Table<Four<Wide>>,
    /// Entries that sliding logs have room for, and the most that they may have.
    entries: AtomicUsize,
    most_entries: usize,
    /// Where tidying up for logs goes on.
    swept: AtomicUsize,
    turned_away: AtomicU64,
}

impl Memory {
    /// A store for 131,072 keys: about 5 MB, made at first use.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store for `keys` keys.
    ///
    /// # Panics
    ///
    /// When `keys` is zero, or 2^32 and more.
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        Self::builder().capacity(keys).build()
    }

    /// A store with another clock or other bounds.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder::default()
    }

    /// How many keys the store was made for.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// How often a key was not counted because there was no room for it.
    pub fn turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    /// How many rows are in use at this moment, keys that have not been met again since they recovered
    /// left out. Walks the whole table.
    pub fn len(&self) -> usize {
        let Moment { now, since } = self.0.moment();
        self.0.slim.len(since) + self.0.narrow.len(now) + self.0.wide.len(now)
    }

    /// About how many rows are in use, in bounded time and without holding anybody up: in a store for more than
    /// some 200,000 keys, told from a sample, which is off by one or two in a hundred where one row in ten is
    /// in use.
    pub fn about_len(&self) -> usize {
        let Moment { now, since } = self.0.moment();
        self.0.slim.about_len(since) + self.0.narrow.about_len(now) + self.0.wide.about_len(now)
    }

    /// Whether no row is in use; see [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spends `cost` of `limit` on `key`, if it admits that: [`take`](Store::take) for one limit, where
    /// there is no charge to be written.
    ///
    /// ```
    /// use tollgate_core::{KeyBuf, Limit, Memory};
    ///
    /// let store = Memory::with_capacity(10_000);
    /// let limit = Limit::per_minute(2);
    /// let key = KeyBuf::of("alice");
    ///
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// let refused = store.spend(&limit, &key, 1)?;
    /// assert!(refused.retry_after().is_some());
    /// # Ok::<(), tollgate_core::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no room for the key.
    #[inline(always)]
    pub fn spend(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Result<Outcome, StoreError> {
        match self.0.spend_first(limit, key, cost) {
            Ok(spent) => Ok(spent.into()),
            Err(passed) => self.spend_otherwise(passed, limit, key, cost),
        }
    }

    #[inline(never)]
    fn spend_otherwise(
        &self,
        passed: Passed,
        limit: &Limit,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_otherwise(passed, limit, key, cost) {
            Some(spent) => Ok(spent.into()),
            None => self.decided(&Charge::of(*limit, *key, cost), Find::OrInsert, Ask::Take),
        }
    }

    /// The same of what is written down already.
    #[inline(never)]
    fn take_otherwise(
        &self,
        passed: Passed,
        charge: &Charge,
        Owed { limit, key, cost, .. }: &Owed,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_otherwise(passed, limit, key, *cost) {
            Some(spent) => Ok(spent.into()),
            None => self.decided(charge, Find::OrInsert, Ask::Take),
        }
    }

    #[inline(never)]
    fn decided(&self, charge: &Charge, find: Find, ask: Ask) -> Result<Outcome, StoreError> {
        if charge.is_empty() {
            return Ok(Outcome::free());
        }
        let outcome = self.0.rows(charge, find, |rows, now| ask.of(rows, charge, now));
        outcome.ok_or_else(|| self.turn_away())
    }

    fn turn_away(&self) -> StoreError {
        self.0.turned_away.fetch_add(1, Ordering::Relaxed);
        StoreError::full()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Take,
    Peek,
    Reset,
}

impl Ask {
    /// `None` when there is no room to write the charge down.
    fn of(self, found: &mut [Found], charge: &Charge, now: u64) -> Option<Outcome> {
        if let Self::Reset = self {
            // What is held is held by somebody: it stands until that one gives it back.
            let forgotten =
                found.iter_mut().zip(charge.owed()).filter(|(_, owed)| !owed.limit.is_held());
            forgotten.for_each(|(found, _)| found.state = State::default());
        }
        if self == Self::Take && !found.iter().all(|found| found.has_room) {
            return Self::taken_without_room(found, charge, now);
        }
        if self == Self::Peek && charge.owed().any(|owed| owed.limit.is_carried()) {
            // Who only looks leaves the row as it was written.
            let mut states: Vec<_> = found.iter().map(|found| found.state.clone()).collect();
            return with_slots(states.iter_mut(), charge, |slots| {
                Some(preview(slots, now, charge.keys()))
            });
        }
        with_slots(found.iter_mut().map(|found| &mut found.state), charge, |slots| match self {
            Self::Take => Some(decide(slots, now, charge.patience(), charge.keys())),
            Self::Peek | Self::Reset => Some(preview(slots, now, charge.keys())),
        })
    }

    /// Who is refused anyway is refused all the same: no flood frees a key by leaving no room for
    /// another of its limits. A shadow without room is not there.
    fn taken_without_room(found: &mut [Found], charge: &Charge, now: u64) -> Option<Outcome> {
        let mut states: Vec<_> = found.iter().map(|found| found.state.clone()).collect();
        let outcome = with_slots(states.iter_mut(), charge, |slots| {
            decide(slots, now, charge.patience(), charge.keys())
        });
        let mut each = found.iter().zip(charge.owed());
        let is_written = each.all(|(found, owed)| found.has_room || owed.limit.is_shadow());
        if outcome.is_admitted() && !is_written {
            return None;
        }
        for (found, state) in found.iter_mut().zip(states).filter(|(found, _)| found.has_room) {
            found.state = state;
        }
        Some(outcome)
    }
}

/// Runs `run` on a slot for each state and what is owed to it; one is common and does not allocate.
fn with_slots<'a, R>(
    states: impl Iterator<Item = &'a mut State>,
    charge: &'a Charge,
    run: impl FnOnce(&mut [Slot<'a>]) -> R,
) -> R {
    let mut slots = states.zip(charge.owed()).map(|(state, owed)| {
        let (limit, cost) = (&owed.limit, owed.cost);
        Slot { limit, state, cost }
    });
    match (slots.next(), charge.len()) {
        (Some(mut slot), 1) => run(std::slice::from_mut(&mut slot)),
        (first, _) => {
            let mut slots: SmallVec<[_; USUAL]> = first.into_iter().chain(slots).collect();
            run(&mut slots)
        }
    }
}

impl Store for Memory {
    type Future = Never;

    #[inline]
    fn take(&self, charge: &Charge) -> Answer<Never> {
        let Some(owed) = charge.only().filter(|_| charge.patience().is_none()) else {
            return Answer::Now(self.decided(charge, Find::OrInsert, Ask::Take));
        };
        let Owed { limit, key, cost, .. } = owed;
        match self.0.spend_first(limit, key, *cost) {
            // Made where it is returned: moving what has just been written makes the processor wait.
            Ok(spent) => Answer::Now(Ok(spent.into())),
            Err(passed) => Answer::Now(self.take_otherwise(passed, charge, owed)),
        }
    }

    fn peek(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, Find::Only, Ask::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, Find::Only, Ask::Reset))
    }

    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) {
        if mark.is_void() {
            return;
        }
        let charge = Charge::of(owed.limit, owed.key, owed.cost);
        // A key that was forgotten has nothing to be given back, but may yet have more to pay.
        let more = spent > owed.cost;
        let find = if more { Find::OrInsert } else { Find::Only };
        let settled = self.0.rows(&charge, find, |rows, now| {
            for found in rows.iter_mut().filter(|found| found.has_room) {
                found.state.cell = owed.limit.as_written(found.state.cell, mark);
                owed.limit.settle(&mut found.state, now, mark, owed.cost, spent);
            }
            rows.iter().all(|found| found.has_room)
        });
        if more && !settled {
            let _ = self.turn_away();
        }
    }

    fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        if self.0.is_eager {
            // Whoever says how large it is to be wants it, and no pause at its first decision.
            self.0.make_for(limit);
        }
        Ok(())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("capacity", &self.0.capacity)
            .field("turned_away", &self.turned_away())
            .finish_non_exhaustive()
    }
}
