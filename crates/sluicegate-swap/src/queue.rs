//! Which jobs go together, and which rows are on their way. No I/O.
//!
//! A row is in one flight at a time. Jobs that come meanwhile wait for the row, in the order in which they came, and go
//! together in the next flight. A job of several rows takes its turn in the queues of all of them. The oldest job of all
//! is first in each of its queues, so it starts as soon as its rows are back: nothing can block for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::entry::Entry;
use crate::flight::{Doubt, Flight, FlightRow};
use crate::row::Row;

/// Rows in one flight, if the engine swaps as many.
pub(crate) const MOST_ROWS: usize = 64;

/// Jobs in one flight. More would make the first of them wait for the decisions of the last.
const MOST_JOBS: usize = 1_024;

pub(crate) type Key = Arc<str>;

/// A row as the engine had it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Its version; `None` if it was not there.
    pub(crate) version: Option<u64>,
    pub(crate) row: Arc<Row>,
    /// When that was learnt, by the machine's clock.
    pub(crate) learnt: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: HashMap<Key, Slot>,
    waiting: HashMap<u64, Entry>,
    next: u64,
    /// Remembered rows, in the order in which they may be forgotten.
    remembered: VecDeque<Key>,
    /// How many rows are remembered.
    room: usize,
    /// Rows that one flight can have.
    most_rows: usize,
}

#[derive(Debug, Default)]
struct Slot {
    is_flying: bool,
    waiting: VecDeque<u64>,
    known: Option<Known>,
    /// Whether it was used since it was last looked at for forgetting it.
    is_used: bool,
    is_remembered: bool,
    /// Swaps of the row that may have happened.
    doubts: Vec<Arc<Doubt>>,
}

impl Queue {
    pub(crate) fn new(room: usize, most_rows: usize) -> Self {
        Self { room, most_rows, ..Self::default() }
    }

    /// Adds a job, and returns the flight that it can leave with at once.
    pub(crate) fn push(&mut self, entry: Entry) -> Option<Flight> {
        let (number, first) = (self.next, entry.rows.first().cloned()?);
        self.next += 1;
        for key in &entry.rows {
            self.slots.entry(Arc::clone(key)).or_default().waiting.push_back(number);
        }
        self.waiting.insert(number, entry);
        self.start(&first)
    }

    /// A flight with the jobs that wait for a row.
    fn start(&mut self, key: &Key) -> Option<Flight> {
        let slot = self.slots.get(key)?;
        if slot.is_flying || slot.waiting.is_empty() {
            return None;
        }
        let mut flight = Flight::default();
        self.gather(&mut flight, key);
        (!flight.entries.is_empty()).then_some(flight)
    }

    /// Adds the jobs that wait for rows of the flight, and the further rows that they need.
    pub(crate) fn join(&mut self, flight: &mut Flight) {
        let keys: Vec<Key> = flight.rows.iter().map(|row| Arc::clone(&row.key)).collect();
        keys.iter().for_each(|key| self.gather(flight, key));
    }

    fn gather(&mut self, flight: &mut Flight, key: &Key) {
        while let Some(number) = self.slots.get(key).and_then(|slot| slot.waiting.front().copied())
        {
            let Some(entry) = self.waiting.get(&number) else { return };
            let is_in = |key: &Key| flight.rows.iter().any(|row| row.key == *key);
            let further = entry.rows.iter().filter(|key| !is_in(key)).count();
            let is_ready = |key: &Key| {
                self.slots.get(key).is_some_and(|slot| {
                    slot.waiting.front() == Some(&number) && (!slot.is_flying || is_in(key))
                })
            };
            let has_room = flight.entries.len() < MOST_JOBS
                && flight.rows.len() + further <= self.most_rows.max(entry.rows.len());
            if !(entry.rows.iter().all(is_ready) && (has_room || flight.entries.is_empty())) {
                return;
            }
            let Some(entry) = self.waiting.remove(&number) else { return };
            for key in &entry.rows {
                let Some(slot) = self.slots.get_mut(key) else { continue };
                slot.waiting.pop_front();
                if !slot.is_flying {
                    slot.is_flying = true;
                    flight.rows.push(FlightRow::new(key, slot.known.take(), &slot.doubts));
                }
            }
            flight.entries.push(entry);
        }
    }

    /// Takes back the rows of a flight that has ended, and returns those that can leave now.
    pub(crate) fn land(&mut self, rows: Vec<FlightRow>) -> Vec<Flight> {
        let keys: Vec<Key> = rows.iter().map(|row| Arc::clone(&row.key)).collect();
        for FlightRow { key, known, .. } in rows {
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            slot.is_flying = false;
            slot.known = known.filter(|known| known.version.is_some() && slot.doubts.is_empty());
            slot.is_used = true;
            if slot.known.is_some() && !slot.is_remembered {
                slot.is_remembered = true;
                self.remembered.push_back(key);
            }
        }
        let flights = keys.iter().filter_map(|key| self.start(key)).collect();
        keys.iter().for_each(|key| self.tidy(key));
        self.forget();
        flights
    }

    /// Drops a slot that holds nothing.
    fn tidy(&mut self, key: &Key) {
        let is_empty = |slot: &Slot| {
            let is_idle = !slot.is_flying && slot.waiting.is_empty() && slot.doubts.is_empty();
            is_idle && slot.known.is_none() && !slot.is_remembered
        };
        if self.slots.get(key).is_some_and(is_empty) {
            self.slots.remove(key);
        }
    }

    /// Forgets rows beyond the room for them: the oldest that was not used since it was looked at last.
    fn forget(&mut self) {
        while self.remembered.len() > self.room {
            let Some(key) = self.remembered.pop_front() else { return };
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            if std::mem::take(&mut slot.is_used) && self.room > 0 {
                self.remembered.push_back(key);
                continue;
            }
            (slot.known, slot.is_remembered) = (None, false);
            self.tidy(&key);
        }
    }

    /// The row as it is remembered, unless it is on its way.
    pub(crate) fn known(&self, key: &str) -> Option<&Known> {
        self.slots.get(key).and_then(|slot| slot.known.as_ref())
    }

    /// The swap of these rows may have happened.
    pub(crate) fn doubt(&mut self, doubt: &Arc<Doubt>) {
        for key in doubt.keys() {
            let slot = self.slots.entry(Arc::clone(key)).or_default();
            slot.doubts.push(Arc::clone(doubt));
            slot.known = None;
        }
    }

    /// It is known whether the swap has happened, or nobody asks any more.
    pub(crate) fn settle_doubt(&mut self, doubt: &Arc<Doubt>) {
        for key in doubt.keys() {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.doubts.retain(|other| !Arc::ptr_eq(other, doubt));
            }
            self.tidy(key);
        }
    }
}
