//! Rows that are shared by keys without room.
//!
//! They are in a small table of their own, allocated at first use: 256 rows for each limit, chosen by the fingerprint
//! of the key. A key is charged there only while every bucket that its own row may be in is locked and full. So the
//! key has no row of its own then. If one is made for it later, under the lock of one of these buckets, that row
//! begins with what the shared row says.
//!
//! A full table is no way past a limit. If a limit has no room for the key, the other limits of the request are still
//! charged, and a key that is new to a full table shares one of 256 rows, unless the limit recovers in seconds. A row
//! that is made later begins as a copy of the shared one, which never holds less than the key has spent. Places of a
//! concurrency limit are not copied, because they are given back elsewhere. Such a key stays with the shared row
//! until no place is held there.

use smallvec::SmallVec;

use super::Inner;
use super::checkout::{Checkout, Target};
use super::locked::{FindMode, LockedBuckets, RowIndex, SearchResult};
use super::log_budget::copy_of;
use super::moment::Moment;
use super::row::{FourRows, FullState};
use super::sync::{AtomicU32, AtomicU64, Ordering};
use super::table::{CHOICES, NEVER, Table, USUAL_LIMITS};
use crate::key::KeyBuf;
use crate::limit::{Limit, Receipt, State, WhenFull};
use crate::store::charge::Debit;

/// Rows that the new keys of one limit share.
const ROWS: u64 = 256;

/// Shared rows of all limits together, about 250 bytes each: enough for 64 limits. If they do not suffice, new keys
/// are refused.
pub(super) const MOST: usize = 64 * ROWS as usize;

/// The largest number of entries in the log of a shared row. Each new key that gets its own row has to copy all of
/// them.
pub(super) const ENTRIES: usize = 256;

/// Keeps the fingerprint of a shared row apart from those of keys.
const SHARED: u64 = 0x7368_6172_6564_2121;

/// The shared rows of all limits.
pub(super) struct SharedRows {
    pub(super) table: Table<FourRows<FullState>>,
    /// The tick at which the last shared row has recovered, except for those with held places.
    until: AtomicU32,
    /// The places held in them.
    held: AtomicU64,
    /// Decisions made with them.
    pub(super) decisions: AtomicU64,
}

/// The shared rows that a charge may need, locked.
pub(super) struct LockedSharedRows<'a> {
    rows: LockedBuckets<'a, FourRows<FullState>>,
    now: u64,
}

impl SharedRows {
    /// Shared rows, at most this many.
    pub(super) fn new(rows: usize, base: u64) -> Self {
        Self {
            table: Table::new(rows, base),
            until: AtomicU32::new(0),
            held: AtomicU64::new(0),
            decisions: AtomicU64::new(0),
        }
    }

    /// Whether anything is counted in a shared row.
    #[inline]
    pub(super) fn is_live(&self, now: u64) -> bool {
        self.until.load(Ordering::Relaxed) > self.table.tick(now)
            || self.held.load(Ordering::Relaxed) > 0
    }

    /// Notes a shared row that was read from a file. No place is held in it.
    #[cfg(feature = "file")]
    pub(super) fn note_restored(&self, expiry: u32) {
        self.until.fetch_max(expiry, Ordering::Relaxed);
    }

    /// Notes the new state of a shared row that held `held` before.
    fn note(&self, limit: &Limit, held: u64, state_held: u64, expiry: u32) {
        if expiry != NEVER {
            // A maximum over all shared rows. It never goes down before its time, so a single late row keeps decisions
            // looking at shared rows, which costs time and changes no answer.
            self.until.fetch_max(expiry, Ordering::Relaxed);
        }
        if limit.is_held() {
            // The difference may be negative. Additions that wrap around come out right, whatever their order.
            self.held.fetch_add(state_held.wrapping_sub(held), Ordering::Relaxed);
        }
    }
}

impl Inner {
    /// Locks the shared rows of the targets. Locks of the other tables are taken before this, never after.
    pub(super) fn shared<'a>(&'a self, target: &[Target<'_>], now: u64) -> LockedSharedRows<'a> {
        let fingerprints: SmallVec<[u64; USUAL_LIMITS]> = target
            .iter()
            .map(|target| self.shared_fingerprint(target.limit, target.fingerprint))
            .collect();
        LockedSharedRows {
            rows: LockedBuckets::lock(&self.shared_rows.table, fingerprints.into_iter(), CHOICES),
            now,
        }
    }

    /// The fingerprint of the row that the key of `fingerprint` shares with other keys.
    fn shared_fingerprint(&self, limit: &Limit, fingerprint: u64) -> u64 {
        // The fingerprint of the key depends on the secret, so no client can choose the shared row that it falls into.
        self.fingerprint(limit.id() ^ SHARED, &KeyBuf::of(fingerprint % ROWS))
    }

    /// The shared row of the target, if anything is counted there.
    pub(super) fn live_in(
        &self,
        shared: &LockedSharedRows<'_>,
        target: &Target<'_>,
    ) -> Option<RowIndex> {
        shared.rows.find_live(self.shared_fingerprint(target.limit, target.fingerprint), shared.now)
    }

    /// The shared row of the target, made if there is none. `None` if the limit is not counted together, if there is
    /// no room for another row, or if another limit of the charge already uses the row.
    pub(super) fn insert_in(
        &self,
        shared: &mut LockedSharedRows<'_>,
        target: &Target<'_>,
        used: &[Option<RowIndex>],
    ) -> Option<RowIndex> {
        let Target { debit, limit, fingerprint } = target;
        // A shadow refuses nobody, so counting it in a shared row would only cost room.
        if limit.is_shadow() || debit.answer_when_full() != WhenFull::CountTogether {
            return None;
        }
        let fingerprint = self.shared_fingerprint(limit, *fingerprint);
        let now = shared.now;
        let release = |row| self.release(row);
        match shared.rows.seek(fingerprint, FindMode::OrInsert, CHOICES, now, release) {
            SearchResult::Found(place) | SearchResult::Inserted(place) => {
                (!used.contains(&Some(place))).then_some(place)
            }
            SearchResult::Absent | SearchResult::Full | SearchResult::NotLocked => None,
        }
    }

    /// The state that a new row begins with if its key may have been counted in the shared row at `place`.
    pub(super) fn seed_of(
        &self,
        shared: &LockedSharedRows<'_>,
        place: RowIndex,
    ) -> Option<Box<State>> {
        // A copy, because other keys go on being counted there.
        shared.rows.look(place, |row| row.as_deref().map(|row| Box::new(copy_of(row))))
    }

    pub(super) fn take_shared(
        &self,
        shared: &LockedSharedRows<'_>,
        limit: &Limit,
        place: RowIndex,
        find: FindMode,
        now: u64,
    ) -> Checkout {
        let row = shared.rows.take(place);
        let found = self.take_out_with(limit, place, row, (find, ENTRIES), now);
        found.in_shared_row(place)
    }

    pub(super) fn put_shared(
        &self,
        shared: &LockedSharedRows<'_>,
        target: &Target<'_>,
        place: RowIndex,
        found: Checkout,
        now: u64,
    ) {
        let limit = target.limit;
        let (before, after) = (found.held, found.state.words[0]);
        let (content, expiry) = self.put_away(limit, found, now);
        self.shared_rows.note(limit, before, after, expiry);
        shared.rows.put(place, self.shared_fingerprint(limit, target.fingerprint), content, expiry);
    }

    /// Settles a charge in the shared row that it was made to. Returns whether that was possible.
    pub(super) fn settle_shared(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        let Moment { now, .. } = self.moment_in_order();
        let target = self.target(debit);
        let mut shared = self.shared(std::slice::from_ref(&target), now);
        let more = spent > debit.cost;
        let place = match self.live_in(&shared, &target) {
            // A row that has recovered has nothing to give back, but more may be charged to it.
            None if more => self.insert_in(&mut shared, &target, &[]),
            place => place,
        };
        let Some(place) = place else { return !more };
        // Charging more may need another entry of a log; giving back never does.
        let find = if more { FindMode::OrInsert } else { FindMode::Existing };
        let mut found = self.take_shared(&shared, &debit.limit, place, find, now);
        if more {
            self.reserve_debt(&debit.limit, &mut found);
        }
        debit.limit.settle(&mut found.state, now, receipt, debit.cost, spent);
        self.put_shared(&shared, &target, place, found, now);
        true
    }
}
