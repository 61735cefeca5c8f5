//! The in-process store: a bounded table that needs no clean-up.
//!
//! The table is a bucketized cuckoo hash table (Pagh and Rodler, "Cuckoo Hashing", 2001; Dietzfelbinger and Weidling,
//! "Balanced allocation and dictionaries with tightly packed constant size bins", 2005) with four choices for each key
//! and buckets of three or four rows. An insertion displaces at most one row, so its cost is bounded. Rows that have
//! recovered are reused where they are found, so nothing is ever swept.

mod bucket;
mod builder;
mod checkout;
#[cfg(feature = "file")]
mod file;
mod locate;
mod lock;
mod locked;
mod log_budget;
#[cfg(all(test, loom))]
mod loom;
mod moment;
mod one_limit;
mod one_word;
mod operation;
#[cfg(feature = "metrics")]
mod record;
mod row;
mod shared_rows;
mod spend;
mod spend_account;
mod spend_one_word;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod word_rows;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::builder::MemoryBuilder;

use self::checkout::Checkout;
use self::locked::FindMode;
use self::log_budget::LogBudget;
use self::moment::{Moment, MonotonicClock, StoreClock};
use self::one_word::OneWord;
use self::operation::Operation;
use self::row::{FourRows, FullState, TwoWords};
use self::shared_rows::SharedRows;
use self::table::Table;
use crate::clock::Clock;
use crate::key::hash::KeyHash;
use crate::key::{KeyBuf, Part};
use crate::limit::{Limit, LimitError, LimitInternals as _, LimitStatus, Outcome, Receipt};
use crate::store::charge::{Charge, Debit};
use crate::store::{Answer, Never, Store, StoreError};

/// Keeps counts in the memory of this process, for a bounded number of keys.
///
/// # What it guarantees
///
/// - **Memory is bounded.** A table is allocated once and never grows: 38.4 bytes for each key of the capacity,
///   however long the keys are. There are three tables. Each is allocated when a layer or limiter that needs it is
///   made, or at first use: one for token buckets that refill by one in a whole number of microseconds (50 a second
///   and 100 a minute do, 3 a second do not), one for all other limits with two words of state, and one for limits
///   with more state (a sliding log, a ban, a minimal gap, carried numbers, as all limits of policy files have). A key
///   of the third table also has a state of its own while it is in use: 144 bytes with glibc. Such a key takes about 180
///   bytes in all. A key with a sliding log takes about 390, because the log has room for 8 entries of its own. What all
///   logs together hold beyond that has a bound. After a carried limit was changed, a key takes up to 530 bytes more until it has
///   recovered by the earlier numbers.
/// - **A limited key stays limited.** A row is given to another key only when its own key has fully recovered, so
///   that it equals a fresh one. No flood of new keys can free a key that is being limited, or give any key more than
///   its limit.
/// - **No key that has a row is refused because of other keys.** If there is no room for a new key, each limit of the
///   request says what happens ([`Limit::when_full`]). The limits that have room are charged all the same. This
///   happens only when more keys than the capacity have spent and not recovered. In tables for one to ten million
///   keys, the first new key without room came at 1.49 times the capacity with the usual token bucket, and at 1.06
///   times with other limits.
/// - **Logs that get no more room are made coarser.** They merge stamps that are close together and count them as the
///   latest of them, so they are never more generous than an exact log. The logs of one limit together get at most as
///   many entries as they leave free, so they cannot take all from another limit's logs.
/// - **Nothing pauses.** There is no task, no thread, no resizing and no sweep. A decision looks at one bucket of
///   three or four rows, rarely at four buckets, and at no more than 48 further ones if it has to make room for a new
///   key. Refusals write nothing, so a flood from one client does not even block its own row.
///
/// # How large to make it
///
/// The number of keys that spend within the time that they take to recover, with a margin for a flood. An empty
/// bucket recovers in burst ÷ rate, a window when it has ended, a sliding window when the next one has ended. With
/// 100,000 clients an hour and a limit by the minute, some thousand rows are in use at a time. With a limit by the
/// day, all of them are.
///
/// If rows last long, no affordable table outlasts a flood of invented keys: 500 new keys a second are 1.8 million
/// rows in a window of an hour. The default of 131,072 keys is meant for services with a few thousand clients at a
/// time. It takes 5 MB for each table that is used, because many services have several layers with a store each. The
/// states of the third table add 19 MB if every key is in use, and 46 MB if all have logs.
///
/// # When it is full
///
/// What happens to a new key without room is decided for each limit, by [`Limit::when_full`] or by default:
///
/// | answer | the new key | by default for |
/// | --- | --- | --- |
/// | [`CountTogether`](crate::limit::WhenFull::CountTogether) | shares one of 256 rows of the limit with other new keys | logs, bans, `count_refused`, `count_if`, concurrency, and all that takes more than ten seconds to recover |
/// | [`Admit`](crate::limit::WhenFull::Admit) | is not counted by this limit; the other limits of the request are | limits that recover within ten seconds, and shadows |
/// | [`Refuse`](crate::limit::WhenFull::Refuse) | is refused with 503 | none |
///
/// A shared row never forgets, and never admits more than the limit gives to one key. So the new keys of one limit
/// together get at most 256 times the limit, and a new client can be refused because of others. A shared row has its
/// own windows and refills, not those of the key that asks. A key that later gets its own row begins with what the
/// shared row has counted. Charges to a shared row are given back to that row.
///
/// [`counted_together`](Self::counted_together) and [`turned_away`](Self::turned_away) return how often it happened.
/// Keys that a client cannot invent (an address, an account that was verified by an outer layer) are the better
/// defence.
///
/// In a full table, room that is given back early may be found up to four seconds later: a bucket whose rows could not
/// be moved is not searched again for that long, unless one of its neighbours recovers.
///
/// # How keys are told apart
///
/// By a 64-bit hash of the key and the limit, with a secret that is drawn when the store is made. The chance that any
/// two of a million keys have the same hash, and share a budget, is 1 in 37 million; for ten million keys it is 1 in
/// 370,000. That holds for any keys, also for those that a client has chosen: without the secret, it cannot search for
/// such a pair.
///
/// Clones share one store.
///
/// ```
/// use sluicegate::Memory;
///
/// let store = Memory::with_capacity(1_000_000);
/// assert_eq!(store.capacity(), 1_000_000);
/// ```
#[derive(Clone)]
pub struct Memory(Arc<Inner>, #[cfg(feature = "file")] Option<Arc<file::Keeper>>);

struct Inner {
    clock: StoreClock,
    /// When the store was made, by its time.
    base: u64,
    monotonic: MonotonicClock,
    hash: KeyHash,
    capacity: usize,
    /// Whether tables are allocated before they are used.
    is_eager: bool,
    /// Rows of one word, for most token buckets.
    one_word: Table<OneWord>,
    /// Rows of two words.
    two_words: Table<FourRows<TwoWords>>,
    /// Rows of limits with more state.
    full_state: Table<FourRows<FullState>>,
    /// The entries that sliding logs may have.
    log_budget: LogBudget,
    turned_away: AtomicU64,
    /// Rows for keys without room.
    shared_rows: SharedRows,
}

impl Inner {
    /// Identifies the row of this limit and key. Never 0, which marks an empty row.
    #[inline]
    fn fingerprint(&self, limit: u64, key: &KeyBuf) -> u64 {
        self.hash.of(limit, key).max(1)
    }

    /// The [`fingerprint`](Self::fingerprint) of the key of one value.
    #[inline(always)]
    fn fingerprint_of(&self, limit: u64, part: &impl Part) -> u64 {
        self.hash.of_part(limit, part).max(1)
    }
}

impl Memory {
    /// A store for 131,072 keys: about 5 MB for each table, allocated at first use, and
    /// [more](Self#what-it-guarantees) for keys with more than two words of state.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store for `keys` keys.
    ///
    /// # Panics
    ///
    /// If `keys` is zero, or 2^32 or more.
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        Self::builder().capacity(keys).build()
    }

    /// Builds a store with another clock or other bounds.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder::default()
    }

    /// The number of keys that the store was made for.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// How many requests a limit did not count, or refused with [`WhenFull::Refuse`](crate::limit::WhenFull::Refuse),
    /// because there was no room for the key. Requests that another limit refused are not included.
    pub fn turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    /// How many decisions were made with rows that several keys share, because there was no room for a row of each:
    /// see [`WhenFull::CountTogether`](crate::limit::WhenFull::CountTogether).
    pub fn counted_together(&self) -> u64 {
        self.0.shared_rows.decisions.load(Ordering::Relaxed)
    }

    /// The number of rows in use, except those of keys that have recovered and not come back. Reads the whole table.
    pub fn len(&self) -> usize {
        let Moment { now, since } = self.0.moment();
        self.0.one_word.len(since) + self.0.two_words.len(now) + self.0.full_state.len(now)
    }

    /// About how many rows are in use, in bounded time and without holding up other threads. In a store for more than
    /// some 200,000 keys this is estimated from a sample, with an error of one or two percent if one row in ten is in
    /// use.
    pub fn about_len(&self) -> usize {
        let Moment { now, since } = self.0.moment();
        self.0.one_word.about_len(since)
            + self.0.two_words.about_len(now)
            + self.0.full_state.about_len(now)
    }

    /// Whether no row is in use; see [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes now what has changed, if the store is [kept in a file](MemoryBuilder::keep_in), and waits until it is on
    /// the disk. Needed where the store is not dropped at the end, because it is in a `static`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. The old one stays, and the next write begins a new one.
    #[cfg(feature = "file")]
    #[cfg_attr(docsrs, doc(cfg(feature = "file")))]
    pub fn flush(&self) -> std::io::Result<()> {
        self.1.as_ref().map_or(Ok(()), |keeper| keeper.flush())
    }

    #[inline(never)]
    fn decided(
        &self,
        charge: &Charge,
        find: FindMode,
        operation: Operation,
    ) -> Result<Outcome, StoreError> {
        if charge.is_empty() {
            return Ok(Outcome::free());
        }
        let (outcome, is_shared) = self.0.rows(charge, find, |rows, now| {
            (operation.of(rows, charge, now), rows.iter().any(Checkout::is_shared))
        });
        // Counted after the locks are given back, because all threads share the counter.
        if operation == Operation::Take && is_shared {
            self.0.shared_rows.decisions.fetch_add(1, Ordering::Relaxed);
        }
        if operation == Operation::Take && outcome.as_ref().map_or(true, Outcome::is_uncounted) {
            self.turn_away();
        }
        outcome
    }

    fn turn_away(&self) {
        self.0.turned_away.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for Memory {
    type Future = Never;

    #[inline]
    fn take(&self, charge: &Charge) -> Answer<Never> {
        // A request that may wait is tried without the lock too, since nearly always it need not wait. Only by a plain
        // limit: others may write something down for a wait, also where the request is admitted at once.
        let is_patient = charge.patience().is_some();
        let Some(debit) = charge.only().filter(|debit| !is_patient || debit.limit.is_plain())
        else {
            return Answer::Now(self.decided(charge, FindMode::OrInsert, Operation::Take));
        };
        let Debit { limit, key, cost, .. } = debit;
        let fingerprint = self.0.fingerprint(limit.id(), key);
        match self.0.spend(limit, fingerprint, *cost) {
            // Built in the place that it is returned in: moving freshly written memory makes the processor wait.
            Ok(spent) if !is_patient || spent.is_admitted() => Answer::Now(Ok(spent.into())),
            Err(not_spent) if !is_patient => {
                Answer::Now(self.take_otherwise(not_spent, charge, debit, fingerprint))
            }
            // A request that may wait books a place ahead, under the lock.
            Ok(_) | Err(_) => {
                Answer::Now(self.decided(charge, FindMode::OrInsert, Operation::Take))
            }
        }
    }

    fn peek(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, FindMode::ExistingOrShared, Operation::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.decided(charge, FindMode::Existing, Operation::Reset))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if receipt.is_void() {
            return;
        }
        let charge = Charge::of(debit.limit, debit.key, debit.cost);
        // A forgotten key has nothing to give back, but more may be charged to it.
        let more = spent > debit.cost;
        // The row of a key may have changed from the shared one to its own since the charge. It is given back where it
        // was written, or one would get what the other has lost.
        if receipt.is_together() {
            let settled = self.0.settle_shared(debit, receipt, spent);
            if !settled {
                self.turn_away();
            }
            if !more {
                return;
            }
        }
        let is_elsewhere = receipt.is_together();
        let find = if more && !is_elsewhere { FindMode::OrInsert } else { FindMode::Existing };
        let settled = self.0.rows(&charge, find, |rows, now| {
            for found in rows.iter_mut().filter(|found| found.has_room) {
                if more {
                    self.0.reserve_debt(&debit.limit, found);
                }
                found.state.words = debit.limit.as_written(found.state.words, receipt);
                // A row of one word comes back in other words of the same meaning. A refund compares words to learn
                // whether anybody came later, so they take the form of the receipt first.
                debit.limit.settle(&mut found.state, now, receipt, debit.cost, spent);
            }
            rows.iter().all(|found| found.has_room)
        });
        if more && !settled && !is_elsewhere {
            self.turn_away();
        }
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        let charge = Charge::of(debit.limit, debit.key, 0);
        let find = if spent > charged { FindMode::OrInsert } else { FindMode::Existing };
        // The keys without room were decided about before, so none is counted as turned away here.
        self.0.rows(&charge, find, |rows, now| {
            for found in rows.iter_mut().filter(|found| found.has_room) {
                if spent > charged {
                    self.0.reserve_debt(&debit.limit, found);
                }
                debit.limit.follow_charge(&mut found.state, now, charged, spent);
            }
        });
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        if !debit.limit.can_follow(status) {
            return;
        }
        let charge = Charge::of(debit.limit, debit.key, 0);
        self.0.rows(&charge, FindMode::OrInsert, |rows, now| {
            for found in rows.iter_mut().filter(|found| found.has_room) {
                debit.limit.follow_status(&mut found.state, now, status);
            }
        });
    }

    fn clock(&self) -> Clock {
        self.0.clock.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        limit.check_length()?;
        if self.0.is_eager {
            // With an explicit capacity, the table is allocated now and not at the first decision.
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
