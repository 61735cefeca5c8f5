//! The in-process store: a bounded table that tidies itself.
//!
//! The table is a bucketized cuckoo hash table (Pagh and Rodler, "Cuckoo Hashing", 2001; Dietzfelbinger and Weidling,
//! "Balanced allocation and dictionaries with tightly packed constant size bins", 2005) with four choices for each key
//! and buckets of three or four rows. An insertion displaces at most one row, so its cost is bounded. Rows that have
//! recovered are reused where they are found, so nothing is ever swept.

mod bucket;
mod build;
mod checked_out;
mod hash;
mod locate;
mod lock;
mod locked;
mod log_budget;
#[cfg(all(test, loom))]
mod loom;
mod moment;
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

pub use self::build::MemoryBuilder;

use self::checked_out::CheckedOut;
use self::hash::Seed;
use self::locked::FindMode;
use self::log_budget::LogBudget;
use self::moment::{Moment, MonotonicClock};
use self::one_word::OneWord;
use self::operation::Operation;
use self::row::{FourRows, FullState, TwoWords};
use self::shared_rows::SharedRows;
use self::spend::NotSpent;
use self::table::Table;
use crate::clock::Clock;
use crate::key::KeyBuf;
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, Receipt};
use crate::store::charge::{Charge, Debit};
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
///   may change). A sliding log has room for 8 entries of its own, 128 bytes; all logs together share a
///   bound on what they hold beyond that.
/// - **What is limited stays limited.** A row is used for another key only when its own has fully
///   recovered, which is when it equals a fresh one. No flood of new keys can free a key that is
///   being limited, nor give any key more than its limit.
/// - **No key that has a row is refused because of other keys.** When there is no room for a new key, each limit
///   of the request says what happens ([`Limit::when_full`]), and the limits that there is room for are
///   charged all the same. It takes more keys than the capacity that have spent and not recovered: in
///   tables for one to ten million keys, 1.49 times the capacity before it happened to the first one with
///   the usual token bucket, 1.06 times with other limits.
/// - **Logs that get no more room are made coarser.** They merge stamps that are close together and count them
///   as the latest of them, so they are never more generous than an exact log. The logs of one limit get at most
///   as many entries as they leave free, so they cannot take all from another limit's.
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
/// minute, some thousand rows are in use at a time; with a limit by the day, all of them are.
///
/// No table that one can afford outlasts a flood of invented keys where rows last long: 500 new keys a second
/// are 1.8 million rows in a window of an hour. The default of 131,072 keys is made for services with a few
/// thousand clients at a time, 5 MB for each table that is used, since many services have several layers
/// with a store each.
///
/// # When it is full
///
/// What then happens to a new key is said for each limit, by [`Limit::when_full`] or by what the limit is for:
///
/// | answer | the new key | by default for |
/// | --- | --- | --- |
/// | [`CountTogether`](crate::limit::WhenFull::CountTogether) | shares one of 256 rows of the limit with other new keys | logs, bans, `count_refused`, `count_if`, concurrency, and all that takes more than ten seconds to recover |
/// | [`Admit`](crate::limit::WhenFull::Admit) | is not counted by this limit; the other limits of the request are | limits that recover within ten seconds, and shadows |
/// | [`Refuse`](crate::limit::WhenFull::Refuse) | is refused with 503 | none |
///
/// A shared row never forgets and never admits more than the limit gives to one key, so the newcomers of one limit
/// get 256 times the limit together, and a stranger can be refused on account of others. The windows and the
/// steps of a shared row are those of the row, not of the key that asks. A key that later gets a row of its own
/// begins with what the shared row has counted. Charges to a shared row are given back to that row.
///
/// [`counted_together`](Self::counted_together) and [`turned_away`](Self::turned_away) say how often it happened.
/// Keys that nobody can invent (an address, an account that was checked further out) are the better defence.
///
/// # How keys are told apart
///
/// By a 64-bit hash of the key and the limit, with a secret seed drawn when the store is made. That any two
/// of a million keys meet, and share a budget, has a chance of 1 in 37 million; among ten million, 1 in
/// 370,000. Without the seed, such a pair cannot be searched for.
///
/// Clones are the same store.
///
/// ```
/// use sluicegate::Memory;
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
    monotonic: MonotonicClock,
    seed: Seed,
    capacity: usize,
    /// Whether tables are made before they are used.
    is_eager: bool,
    /// Rows of one word, for most token buckets.
    one_word: Table<OneWord>,
    /// Rows of two words.
    two_words: Table<FourRows<TwoWords>>,
    /// Rows of limits that remember more.
    full_state: Table<FourRows<FullState>>,
    /// The entries that sliding logs may have.
    log_budget: LogBudget,
    turned_away: AtomicU64,
    /// Rows of keys that there is no room for.
    shared_rows: SharedRows,
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

    /// How many requests were not counted by a limit, or refused by [`WhenFull::Refuse`](crate::limit::WhenFull::Refuse),
    /// because there was no room for the key; those that another limit refused are left out.
    pub fn turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    /// How many decisions were made by rows that several keys share, because there was no room for a row of
    /// each: see [`WhenFull::CountTogether`](crate::limit::WhenFull::CountTogether).
    pub fn counted_together(&self) -> u64 {
        self.0.shared_rows.decisions.load(Ordering::Relaxed)
    }

    /// How many rows are in use at this moment, keys that have not been met again since they recovered
    /// left out. Walks the whole table.
    pub fn len(&self) -> usize {
        let Moment { now, since } = self.0.moment();
        self.0.one_word.len(since) + self.0.two_words.len(now) + self.0.full_state.len(now)
    }

    /// About how many rows are in use, in bounded time and without holding anybody up: in a store for more than
    /// some 200,000 keys, told from a sample, which is off by one or two in a hundred where one row in ten is
    /// in use.
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

    /// Spends `cost` of `limit` on `key`, if it admits that: [`take`](Store::take) for one limit, where
    /// there is no charge to be written.
    ///
    /// ```
    /// use sluicegate::{Limit, Memory};
    /// use sluicegate::key::KeyBuf;
    ///
    /// let store = Memory::with_capacity(10_000);
    /// let limit = Limit::per_minute(2);
    /// let key = KeyBuf::of("alice");
    ///
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// assert!(store.spend(&limit, &key, 1)?.is_admitted());
    /// let refused = store.spend(&limit, &key, 1)?;
    /// assert!(refused.retry_after().is_some());
    /// # Ok::<(), sluicegate::store::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no room for the key, and the limit does not count it [together](crate::limit::WhenFull) with
    /// others.
    #[inline(always)]
    pub fn spend(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Result<Outcome, StoreError> {
        match self.0.spend_first(limit, key, cost) {
            Ok(spent) => Ok(spent.into()),
            Err(not_spent) => self.spend_otherwise(not_spent, limit, key, cost),
        }
    }

    #[inline(never)]
    fn spend_otherwise(
        &self,
        not_spent: NotSpent,
        limit: &Limit,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_otherwise(not_spent, limit, key, cost) {
            Some(spent) => Ok(spent.into()),
            None => {
                self.decided(&Charge::of(*limit, *key, cost), FindMode::OrInsert, Operation::Take)
            }
        }
    }

    /// Like [`spend_otherwise`](Self::spend_otherwise), for a charge that is already made.
    #[inline(never)]
    fn take_otherwise(
        &self,
        not_spent: NotSpent,
        charge: &Charge,
        Debit { limit, key, cost, .. }: &Debit,
    ) -> Result<Outcome, StoreError> {
        match self.0.spend_otherwise(not_spent, limit, key, *cost) {
            Some(spent) => Ok(spent.into()),
            None => self.decided(charge, FindMode::OrInsert, Operation::Take),
        }
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
            (operation.of(rows, charge, now), rows.iter().any(CheckedOut::is_shared))
        });
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
        let Some(debit) = charge.only().filter(|_| charge.patience().is_none()) else {
            return Answer::Now(self.decided(charge, FindMode::OrInsert, Operation::Take));
        };
        let Debit { limit, key, cost, .. } = debit;
        match self.0.spend_first(limit, key, *cost) {
            // Made where it is returned: moving what has just been written makes the processor wait.
            Ok(spent) => Answer::Now(Ok(spent.into())),
            Err(not_spent) => Answer::Now(self.take_otherwise(not_spent, charge, debit)),
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
        // A key that was forgotten has nothing to be given back, but may yet have more to pay.
        let more = spent > debit.cost;
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
                found.state.words = debit.limit.as_written(found.state.words, receipt);
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
        // What there is no room for was decided by somebody else: nobody is turned away.
        self.0.rows(&charge, find, |rows, now| {
            for found in rows.iter_mut().filter(|found| found.has_room) {
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
        self.0.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        limit.check_length()?;
        if self.0.is_eager {
            // An explicit capacity means that the table is wanted now, and not at the first decision.
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
