//! The in-process store: a bounded table that tidies itself.

mod build;
mod hash;
mod locate;
mod table;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub use self::build::MemoryBuilder;

use self::hash::Seed;
use self::locate::{Find, Found};
use self::table::Table;
use crate::charge::{Charge, Owed};
use crate::clock::Clock;
use crate::few::Few;
use crate::limit::{Cell, Decision, Mark, Slot, State, Verdict, decide, preview};
use crate::store::{Answer, Never, Store, StoreError};

/// Counts in the memory of this process, for a bounded number of keys.
///
/// # What it guarantees
///
/// - **Memory is bounded.** The table is made once and never grows: 32 bytes a row for a bucket or a
///   window, with a quarter more rows than the capacity. Limits that remember more (a sliding log, a
///   ban, a minimal gap) have a table of their own, made at their first use, and sliding logs share a
///   bound on the entries that they hold.
/// - **What is limited stays limited.** A row is used for another key only when its own has fully
///   recovered, which is when it equals a fresh one. No flood of new keys can free a key that is
///   being limited, nor give any key more than its limit.
/// - **When there is no room**, a new key is not counted: the store answers
///   [`StoreError::full`], which the layer treats as it was told to treat a failing store, and
///   [`turned_away`](Self::turned_away) counts it. This begins when more keys than the capacity spend
///   within the time that they take to recover, so size the table for that.
/// - **Nobody has to clean up.** There is no task, no thread and no sweep: a decision touches at most
///   16 rows for each limit.
///
/// Keys are told apart by a 64-bit hash with a secret seed, drawn when the store is made: among a
/// million keys that two meet has a chance of 1 in 37 million.
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
    seed: Seed,
    capacity: usize,
    /// Rows of two words.
    narrow: Table<Cell>,
    /// Rows of limits that remember more.
    wide: std::sync::OnceLock<Table<Option<Box<State>>>>,
    /// Entries that sliding logs have room for, and the most that they may have.
    entries: AtomicUsize,
    most_entries: usize,
    /// Where tidying up for logs goes on.
    swept: AtomicUsize,
    turned_away: AtomicU64,
}

impl Memory {
    /// A store for 262,144 keys, about 10 MB.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store for `keys` keys.
    ///
    /// # Panics
    ///
    /// When `keys` is zero.
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
        let now = self.0.clock.now();
        self.0.narrow.len(now) + self.0.wide.get().map_or(0, |wide| wide.len(now))
    }

    /// Whether no row is in use; see [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn decided(&self, charge: &Charge, find: Find, ask: Ask) -> Result<Decision, StoreError> {
        if charge.is_empty() {
            return Ok(Decision::new(Verdict::Admit { wait: Default::default() }, Few::new()));
        }
        let decision = self.0.rows(charge, find, |rows, now| ask.of(rows, charge, now));
        if decision.is_none() {
            self.0.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        decision.ok_or_else(StoreError::full)
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Take,
    Peek,
    Reset,
}

impl Ask {
    fn of(self, found: &mut [Found], charge: &Charge, now: u64) -> Decision {
        if let Self::Reset = self {
            found.iter_mut().for_each(|found| found.state = State::default());
        }
        let mut one = None;
        let mut many = Vec::new();
        for (found, owed) in found.iter_mut().zip(charge.owed()) {
            let slot = Slot { limit: &owed.limit, state: &mut found.state, cost: owed.cost };
            if charge.len() == 1 { one = Some(slot) } else { many.push(slot) }
        }
        let slots = match &mut one {
            Some(slot) => std::slice::from_mut(slot),
            None => &mut many[..],
        };
        match self {
            Self::Take => decide(slots, now, charge.patience()),
            Self::Peek | Self::Reset => preview(slots, now),
        }
    }
}

impl Store for Memory {
    type Future = Never;

    fn take(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, Find::OrInsert, Ask::Take))
    }

    fn peek(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, Find::Only, Ask::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, Find::Only, Ask::Reset))
    }

    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) {
        let charge = Charge::of(owed.limit, owed.key, owed.cost);
        self.0.rows(&charge, Find::Only, |rows, now| {
            for found in rows {
                // A key that was forgotten owes nothing: there is nothing to give back.
                if found.is_kept() || spent > owed.cost {
                    owed.limit.settle(&mut found.state, now, mark, owed.cost, spent);
                }
            }
        });
    }

    fn clock(&self) -> Clock {
        self.0.clock.clone()
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
