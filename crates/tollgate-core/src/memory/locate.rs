//! Finding the rows of a charge, all of them locked at once, in one order for everybody.

use super::locked::{Find, Locked, Place, Sought};
use super::room::room_of;
use super::table::{CHOICES, Table};
use super::{Inner, WideRow};
use crate::charge::{Charge, Owed};
use crate::limit::{Cell, Limit, State};

/// A row's state, taken out for the time of a decision.
pub(super) struct Found {
    pub(super) state: State,
    place: Option<Place>,
    /// Whether one more charge can be written down: there is a row, and room in its log.
    pub(super) has_room: bool,
    /// Entries that the log is counted with.
    counted: usize,
}

impl Found {
    fn narrow(cell: Cell, place: Option<Place>) -> Self {
        let state = State { cell, ..State::default() };
        Self { state, has_room: place.is_some(), place, counted: 0 }
    }
}

struct Wanted<'a> {
    limit: &'a Limit,
    print: u64,
}

impl Inner {
    /// Runs `run` on the states of all that is owed, under their locks, at one moment. The state of a
    /// row that there is no room for is a fresh one, and not kept.
    pub(super) fn rows<R>(
        &self,
        charge: &Charge,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let mut owed = charge.owed();
        match (owed.next(), owed.next()) {
            (Some(owed), None) if !owed.limit.is_wide() => self.one_narrow(owed, find, run),
            _ => self.any(charge, find, run),
        }
    }

    /// The common case: one row of two words, in its first bucket, without allocating.
    fn one_narrow<R>(
        &self,
        owed: &Owed,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let wanted = Wanted { limit: &owed.limit, print: self.seed.print(owed) };
        let mut bucket = self.narrow.lock(self.narrow.bucket(wanted.print, 0));
        // Read under the lock: no decision on a row goes by an older clock than the one before it.
        let now = self.clock.now();
        let tick = self.narrow.tick(now);
        let mut row = bucket.find_live(wanted.print, tick);
        if row.is_none() {
            let passed = bucket.is_passed(tick);
            if !passed {
                row = bucket.find(wanted.print);
            }
            if row.is_none() && find == Find::OrInsert && !passed {
                row = bucket.free(tick, |_| false);
                if let Some(row) = row {
                    bucket.claim(row, wanted.print);
                }
            }
            if row.is_none() && (passed || find == Find::OrInsert) {
                drop(bucket);
                return self.everywhere(&[wanted], find, run);
            }
        }
        let cell = row.map_or([0; 2], |row| *bucket.row(row));
        let mut found = [Found::narrow(cell, row.map(|row| (0, row)))];
        let result = run(&mut found, now);
        if let Some(row) = row {
            let [found] = found;
            *bucket.row(row) = found.state.cell;
            bucket.expire_at(row, expiry(&self.narrow, wanted.limit, &found.state, now));
        }
        result
    }

    fn any<R>(&self, charge: &Charge, find: Find, run: impl FnOnce(&mut [Found], u64) -> R) -> R {
        let wanted: Vec<_> = charge
            .owed()
            .map(|owed| Wanted { limit: &owed.limit, print: self.seed.print(owed) })
            .collect();
        // Most rows stand in their first bucket, so the others are locked only when they must be.
        match self.within(&wanted, find, 1, run) {
            Ok(result) => result,
            Err(run) => self.everywhere(&wanted, find, run),
        }
    }

    fn everywhere<R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let result = self.within(wanted, find, CHOICES, run);
        result.unwrap_or_else(|_| unreachable!("no row stands beyond its last choice"))
    }

    /// Looks in the first `choices` buckets of each row; hands `run` back when more of them have to be
    /// looked at.
    fn within<R, F: FnOnce(&mut [Found], u64) -> R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        choices: usize,
        run: F,
    ) -> Result<R, F> {
        let prints = |wide| {
            let of_table = move |wanted: &&Wanted<'_>| wanted.limit.is_wide() == wide;
            wanted.iter().filter(of_table).map(|wanted| wanted.print)
        };
        let mut narrow = Locked::lock(&self.narrow, prints(false), choices);
        let any_wide = wanted.iter().any(|wanted| wanted.limit.is_wide());
        let mut wide = any_wide.then(|| Locked::lock(&self.wide, prints(true), choices));
        let now = self.clock.now();

        let mut places = Vec::with_capacity(wanted.len());
        for Wanted { limit, print } in wanted {
            let sought = match &mut wide {
                Some(wide) if limit.is_wide() => {
                    wide.seek(*print, find, choices, now, |row| self.release(row))
                }
                _ => narrow.seek(*print, find, choices, now, drop),
            };
            match sought {
                Sought::At(place) => places.push(Some(place)),
                Sought::Nowhere | Sought::Full => places.push(None),
                Sought::Further => return Err(run),
            }
        }

        let mut found = Vec::with_capacity(wanted.len());
        for (Wanted { limit, .. }, place) in wanted.iter().zip(places) {
            found.push(match (place, &mut wide) {
                (None, _) => Found::narrow(Cell::default(), None),
                (Some(place), Some(wide)) if limit.is_wide() => {
                    self.take_out(limit, place, wide.row(place), find, now)
                }
                (Some(at), _) => Found::narrow(*narrow.row(at), place),
            });
        }

        let result = run(&mut found, now);

        for (Wanted { limit, print }, found) in wanted.iter().zip(found) {
            let Some(place) = found.place else { continue };
            match &mut wide {
                Some(wide) if limit.is_wide() => {
                    self.recount(found.counted, room_of(&found.state));
                    let expiry = expiry(wide.table(), limit, &found.state, now);
                    wide.expire_at(place, *print, expiry);
                    *wide.row(place) = Some(Box::new(found.state));
                }
                _ => {
                    let expiry = expiry(&self.narrow, limit, &found.state, now);
                    narrow.expire_at(place, *print, expiry);
                    *narrow.row(place) = found.state.cell;
                }
            }
        }
        Ok(result)
    }

    fn take_out(
        &self,
        limit: &Limit,
        place: Place,
        row: &mut WideRow,
        find: Find,
        now: u64,
    ) -> Found {
        let mut state = *row.take().unwrap_or_default();
        // What has left the window makes room before more is asked for.
        limit.tidy(&mut state, now);
        let has_room = find == Find::Only || self.give_room(limit, &mut state);
        Found { place: Some(place), has_room, counted: room_of(&state), state }
    }
}

fn expiry<T: Default>(table: &Table<T>, limit: &Limit, state: &State, now: u64) -> u32 {
    table.expiry(limit.fresh_in(state, now), now)
}
