//! The places of limits of concurrency that this process holds, and the task that renews them.
//!
//! In a row, each process has an entry, which lapses unless it is renewed. This process counts its places in each row by
//! itself: what requests hold, what is being given back, and what a swap without an answer may have taken. A row is in one
//! flight of this process at a time, and the count grows only in a flight of the row. So it is never lower than the row's
//! rightful count. If the row counts more, a settlement or a swap was lost, and the next flight lowers the row.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sluicegate_core::adapter::{Debit, Outcome, Receipt};

use crate::Engine;
use crate::decide::Job;
use crate::entry::Entry;
use crate::queue::Key;
use crate::row::Holder;
use crate::shared::{Shared, lock};

/// A lease is renewed when this fraction of it has passed, which leaves time for a second and a third attempt.
const FRACTION: u64 = 4;

/// Rows that are remembered in which this process holds nothing, but which count more. The bound is for clients that
/// invent keys while the engine is away. Places beyond it end with their lease.
const MOST_IDLE: usize = 4_096;

/// The rows in which this process holds places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    rows: HashMap<Key, RowPlaces>,
    /// How many of them are idle.
    idle: usize,
}

#[derive(Debug, Clone, Copy)]
struct RowPlaces {
    /// The tag of the write that began this process's entry. Later entries of the row have other tags.
    since: u64,
    /// What this process holds.
    count: u64,
    /// What the row counts, as far as this process knows.
    in_row: u64,
    /// When this process's entry lapses, as far as this process knows.
    lapses: u64,
    /// When the write was decided that gave the entry this lease, by this process's clock.
    written: u64,
}

impl RowPlaces {
    /// Whether nothing is held, and the row counts something.
    const fn is_idle(&self) -> bool {
        self.count == 0 && self.in_row > 0
    }
}

impl Places {
    /// The most that the entry of this process which began with `since` may count.
    pub(crate) fn count(&self, key: &str, since: u64) -> u64 {
        self.rows.get(key).filter(|row| row.since == since).map_or(0, |row| row.count)
    }

    /// Places were taken, or may have been. Returns how many of an earlier entry are lost.
    fn raise(&mut self, key: &Key, (since, count): (u64, u64), asked: u64) -> u64 {
        let row = self.rows.get(key).copied();
        let lost = row.filter(|row| row.since != since).map_or(0, |row| row.count);
        let new = RowPlaces { since, count: 0, in_row: 0, lapses: 0, written: asked };
        let row = row.filter(|row| row.since == since).unwrap_or(new);
        let (count, in_row) = (row.count + count, row.in_row + count);
        self.put(key, RowPlaces { count, in_row, ..row });
        lost
    }

    /// A debit of `cost` counts as `spent` from now on.
    fn change(&mut self, key: &Key, since: u64, (cost, spent): (u64, u64)) {
        if let Some(&row) = self.rows.get(key).filter(|row| row.since == since) {
            let count = row.count.saturating_add(spent).saturating_sub(cost);
            self.put(key, RowPlaces { count, ..row });
        }
    }

    /// The row has this entry of this process, by a write that was decided at `asked`.
    fn see(&mut self, key: &Key, own: Option<&Holder>, asked: u64) {
        let Some(&row) = self.rows.get(key) else { return };
        let own = own.filter(|own| own.since == row.since);
        let (in_row, lapses) = own.map_or((0, 0), |own| (own.held, own.lapses));
        // Not every write renews the entry.
        let written = if lapses == row.lapses { row.written } else { asked };
        self.put(key, RowPlaces { in_row, lapses, written, ..row });
    }

    /// The row has nothing of this process. Returns how many places are lost.
    fn lose(&mut self, key: &Key) -> u64 {
        let Some(&row) = self.rows.get(key) else { return 0 };
        self.put(key, RowPlaces { count: 0, in_row: 0, ..row });
        row.count
    }

    fn put(&mut self, key: &Key, row: RowPlaces) {
        let before = self.rows.remove(key);
        self.idle -= usize::from(before.is_some_and(|before| before.is_idle()));
        if row.count > 0 || row.is_idle() && self.idle < MOST_IDLE {
            self.idle += usize::from(row.is_idle());
            self.rows.insert(Arc::clone(key), row);
        }
    }

    /// The rows that have to be renewed or lowered.
    fn due(&self, now: u64, age: u64) -> Vec<Key> {
        let is_due = |row: &RowPlaces| {
            row.in_row > row.count || row.written > now || now - row.written >= age
        };
        self.rows.iter().filter(|(_, row)| is_due(row)).map(|(key, _)| Arc::clone(key)).collect()
    }
}

/// The debits of a take that hold places, and for each the tag of the entry that they are in.
fn held<'e>(entry: &'e Entry, outcome: &'e Outcome) -> impl Iterator<Item = (&'e Key, u64, u64)> {
    let charge = match &entry.job {
        Job::Take(charge) if outcome.is_admitted() => Some(charge),
        _ => None,
    };
    let debits = charge.into_iter().flat_map(|charge| charge.debits());
    let rows = entry.rows.iter().zip(debits.zip(outcome.receipts()));
    rows.filter(|(_, (debit, receipt))| holds(debit, receipt))
        .map(|(key, (debit, receipt))| (key, receipt.words()[1], debit.cost))
}

fn holds(debit: &Debit, receipt: &Receipt) -> bool {
    debit.limit.is_held() && !receipt.is_void()
}

impl<E: Engine> Shared<E> {
    /// A job was done: counts what it holds, or has given back.
    pub(crate) fn count_places(
        self: &Arc<Self>,
        entry: &Entry,
        outcome: Option<&Outcome>,
        asked: u64,
    ) {
        if let (Job::Settle(settlement), Some(key)) = (&entry.job, entry.rows.first()) {
            let (debit, receipt, spent) = &**settlement;
            return self.change_places(key, (debit, receipt), *spent);
        }
        if let Some(outcome) = outcome {
            let lost = self.raise_places(entry, outcome, asked);
            self.counters.places_lost.add(lost);
        }
    }

    /// A take may have been done. What an earlier one may have taken is not lost: nobody was told that it has it.
    pub(crate) fn doubt_places(self: &Arc<Self>, entry: &Entry, outcome: &Outcome, asked: u64) {
        self.raise_places(entry, outcome, asked);
    }

    /// Returns how many places of earlier entries are lost.
    fn raise_places(self: &Arc<Self>, entry: &Entry, outcome: &Outcome, asked: u64) -> u64 {
        let mut lost = 0;
        for (key, since, cost) in held(entry, outcome) {
            lost += lock(&self.places).raise(key, (since, cost), asked);
            self.start_renewing();
        }
        lost
    }

    /// A take that may have been done was not, or nobody will know.
    pub(crate) fn uncount_places(&self, entry: &Entry, outcome: &Outcome) {
        for (key, since, cost) in held(entry, outcome) {
            lock(&self.places).change(key, since, (cost, 0));
        }
    }

    /// A settlement is given up. What it gives back is not held all the same, and the next renewal lowers the row.
    pub(crate) fn drop_settlement(&self, (debit, receipt, spent): &(Debit, Receipt, u64)) {
        self.counters.settlements_dropped.add(1);
        if holds(debit, receipt) {
            let key = self.key(&debit.key, &debit.limit);
            self.change_places(&key, (debit, receipt), debit.cost.min(*spent));
        }
    }

    fn change_places(&self, key: &Key, (debit, receipt): (&Debit, &Receipt), spent: u64) {
        if holds(debit, receipt) {
            lock(&self.places).change(key, receipt.words()[1], (debit.cost, spent));
        }
    }

    /// A row was written, by what was decided at `asked`, in which this process has this entry.
    pub(crate) fn see_places(&self, key: &Key, own: Option<&Holder>, asked: u64) {
        lock(&self.places).see(key, own, asked);
    }

    /// The row has nothing of this process.
    pub(crate) fn lose_places(&self, key: &Key) {
        let lost = lock(&self.places).lose(key);
        self.counters.places_lost.add(lost);
    }

    fn start_renewing(self: &Arc<Self>) {
        if !self.is_renewing.swap(true, Ordering::AcqRel) {
            // The task does not keep the store alive: without a store nothing can be given back.
            let pause = Duration::from_micros(self.process.lease / FRACTION);
            let sleep = self.runtime.sleep(pause);
            self.runtime.spawn(renew(Arc::downgrade(self), sleep));
        }
    }

    /// The rows that have to be renewed. `None` if nothing is held, so that the task may end.
    fn due(&self) -> Option<Vec<Key>> {
        // A renewal is decided a moment after its heartbeat. So a row is due that was written before the middle between two
        // heartbeats, or each second heartbeat would find it too young.
        let (now, age) = (self.runtime.clock.now(), self.process.lease / FRACTION / 2);
        let places = lock(&self.places);
        if places.rows.is_empty() {
            self.is_renewing.store(false, Ordering::Release);
            return None;
        }
        Some(places.due(now, age))
    }
}

async fn renew<E: Engine>(
    store: Weak<Shared<E>>,
    mut sleep: sluicegate_core::adapter::Sleep<tokio::time::Sleep>,
) {
    loop {
        sleep.await;
        let Some(shared) = store.upgrade() else { return };
        let Some(due) = shared.due() else { return };
        let pause = shared.process.lease / FRACTION;
        // What is not renewed in this time is tried again then.
        let until = shared.runtime.clock.now().saturating_add(pause);
        for key in due {
            shared.push(Entry::background(Job::Renew, vec![key], (until, None)));
        }
        sleep = shared.runtime.sleep(Duration::from_micros(pause));
    }
}
