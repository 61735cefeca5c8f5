//! Finding the rows of a charge, all of them locked at once, in one order for everybody.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::Inner;
use super::table::{Bucket, CHOICES, Table};
use crate::charge::{Charge, Owed};
use crate::limit::{Cell, Limit, State};

/// Buckets looked at for each log that needs more room than is left.
const SWEPT: usize = 8;

/// Fewest entries that a log is given room for.
const FIRST_ENTRIES: usize = 4;

/// What a missing row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Find {
    /// Nothing was spent; none is made.
    Only,
    /// One is made.
    OrInsert,
}

/// A row's state, taken out for the time of a decision.
pub(super) struct Found {
    pub(super) state: State,
    place: Option<(usize, usize)>,
}

impl Found {
    /// Whether there is a row to write the state back to.
    pub(super) fn is_kept(&self) -> bool {
        self.place.is_some()
    }
}

struct Wanted<'a> {
    limit: &'a Limit,
    print: u64,
}

type WideRow = Option<Box<State>>;

impl Inner {
    /// Runs `run` on the states of all that is owed, under their locks, at one moment; `None` when a
    /// row has to be made and there is no room.
    pub(super) fn rows<R>(
        &self,
        charge: &Charge,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> Option<R> {
        let mut owed = charge.owed();
        let (first, more) = (owed.next()?, owed.next());
        if more.is_none() && !first.limit.is_wide() {
            self.one_narrow(first, find, run)
        } else {
            self.any(charge, find, run)
        }
    }

    /// The common case: one row of two words, in its first bucket, without allocating.
    fn one_narrow<R>(
        &self,
        owed: &Owed,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> Option<R> {
        let wanted = Wanted { limit: &owed.limit, print: self.seed.print(owed) };
        let first = self.narrow.bucket(wanted.print, 0);
        let mut bucket = self.narrow.lock(first);
        // Read under the lock: no decision on a row goes by an older clock than the one before it.
        let now = self.clock.now();
        let mut row = bucket.find(wanted.print);
        if row.is_none() {
            let in_doubt = bucket.passed;
            if find == Find::OrInsert && !in_doubt {
                row = bucket.claim(wanted.print, self.narrow.tick(now)).map(|(row, _)| row);
            }
            if row.is_none() && (in_doubt || find == Find::OrInsert) {
                drop(bucket);
                return self.some(&[wanted], find, CHOICES, run)?;
            }
        }
        let cell = row.map_or([0; 2], |row| *bucket.row(row));
        let state = State { cell, ..State::default() };
        let mut found = [Found { state, place: row.map(|row| (first, row)) }];
        let result = run(&mut found, now);
        if let Some(row) = row {
            let [found] = found;
            *bucket.row(row) = found.state.cell;
            bucket.expire_at(row, self.expiry(&self.narrow, wanted.limit, &found.state, now));
        }
        Some(result)
    }

    fn any<R>(
        &self,
        charge: &Charge,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> Option<R> {
        let wanted: Vec<_> = charge
            .owed()
            .map(|owed| Wanted { limit: &owed.limit, print: self.seed.print(owed) })
            .collect();
        let mut run = Some(run);
        // Most rows stand in their first bucket, so the others are locked only when they must be.
        [1, CHOICES].into_iter().find_map(|choices| {
            self.some(&wanted, find, choices, |found, now| {
                run.take().expect("runs once: a round that finds all rows is the last")(found, now)
            })
        })?
    }

    /// Looks in the first `choices` buckets of each row. The outer `None` means that more of them have
    /// to be looked at, the inner that there is no room.
    fn some<R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        choices: usize,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> Option<Option<R>> {
        let wide = wanted
            .iter()
            .any(|wanted| wanted.limit.is_wide())
            .then(|| self.wide.get_or_init(|| Table::new(self.capacity, self.clock.now())));
        let narrow_rows = wanted.iter().filter(|wanted| !wanted.limit.is_wide());
        let mut narrow = Locked::lock(&self.narrow, narrow_rows, choices);
        let mut wide = wide.map(|table| {
            let wide_rows = wanted.iter().filter(|wanted| wanted.limit.is_wide());
            Locked::lock(table, wide_rows, choices)
        });
        let now = self.clock.now();

        let mut places = Vec::with_capacity(wanted.len());
        for Wanted { limit, print } in wanted {
            let sought = match &mut wide {
                Some(wide) if limit.is_wide() => wide.seek(*print, find, choices, now, |row| {
                    self.release(row);
                }),
                _ => narrow.seek(*print, find, choices, now, drop),
            };
            match sought {
                Sought::At(place) => places.push(Some(place)),
                Sought::Nowhere => places.push(None),
                Sought::Further => return None,
                Sought::Full => return Some(None),
            }
        }

        let mut found = Vec::with_capacity(wanted.len());
        for (Wanted { limit, .. }, place) in wanted.iter().zip(places) {
            let state = match (place, &mut wide) {
                (None, _) => State::default(),
                (Some(place), Some(wide)) if limit.is_wide() => {
                    // Until it is taken out, an error leaves the row as it was.
                    if !self.give_room(limit, wide.row(place)) {
                        Self::put_back(wanted, &mut narrow, wide, found);
                        return Some(None);
                    }
                    *wide.row(place).take().unwrap_or_default()
                }
                (Some(place), _) => State { cell: *narrow.row(place), ..State::default() },
            };
            found.push(Found { state, place });
        }

        let result = run(&mut found, now);

        for (Wanted { limit, .. }, found) in wanted.iter().zip(found) {
            let Some(place) = found.place else { continue };
            match &mut wide {
                Some(wide) if limit.is_wide() => {
                    let expiry = self.expiry(wide.table, limit, &found.state, now);
                    wide.expire_at(place, expiry);
                    *wide.row(place) = Some(Box::new(found.state));
                }
                _ => {
                    narrow.expire_at(place, self.expiry(&self.narrow, limit, &found.state, now));
                    *narrow.row(place) = found.state.cell;
                }
            }
        }
        Some(Some(result))
    }

    fn put_back(
        wanted: &[Wanted<'_>],
        narrow: &mut Locked<'_, Cell>,
        wide: &mut Locked<'_, WideRow>,
        found: Vec<Found>,
    ) {
        for (Wanted { limit, .. }, found) in wanted.iter().zip(found) {
            match found.place {
                Some(place) if limit.is_wide() => *wide.row(place) = Some(Box::new(found.state)),
                Some(place) => *narrow.row(place) = found.state.cell,
                None => {}
            }
        }
    }

    fn expiry<T: Default>(&self, table: &Table<T>, limit: &Limit, state: &State, now: u64) -> u32 {
        table.expiry(limit.fresh_in(state, now).map(|left| now + left.as_micros() as u64))
    }

    /// Makes sure that a log can take one more entry; says whether it can.
    fn give_room(&self, limit: &Limit, row: &mut WideRow) -> bool {
        let Some(log) = limit.log_of(row.get_or_insert_default()) else { return true };
        if log.room() > 0 {
            return true;
        }
        let more = log.capacity().max(FIRST_ENTRIES);
        if !self.grant(more) {
            self.sweep();
            if !self.grant(more) {
                return false;
            }
        }
        let before = log.capacity();
        log.reserve_exact(more);
        // The allocator may have rounded up: what is really held is what counts.
        self.entries.fetch_add(log.capacity() - before - more, Ordering::Relaxed);
        true
    }

    fn grant(&self, more: usize) -> bool {
        let before = self.entries.fetch_add(more, Ordering::Relaxed);
        if before + more <= self.most_entries {
            return true;
        }
        self.entries.fetch_sub(more, Ordering::Relaxed);
        false
    }

    /// Takes back the room of a row that has recovered.
    fn release(&self, row: WideRow) {
        if let Some(log) = row.and_then(|state| state.log) {
            self.entries.fetch_sub(log.capacity(), Ordering::Relaxed);
        }
    }

    /// Empties recovered rows of the next few buckets, for the room that their logs hold.
    fn sweep(&self) {
        let Some(table) = self.wide.get() else { return };
        let tick = table.tick(self.clock.now());
        let from = self.swept.fetch_add(SWEPT, Ordering::Relaxed);
        for bucket in from..from + SWEPT {
            if let Some(mut bucket) = table.try_lock(bucket % table.buckets()) {
                bucket.tidy(tick).into_iter().for_each(|row| self.release(row));
            }
        }
    }
}

/// Some buckets of a table, locked in the order in which they stand.
struct Locked<'a, T> {
    table: &'a Table<T>,
    buckets: Vec<(usize, MutexGuard<'a, Bucket<T>>)>,
}

enum Sought {
    /// The locked bucket, and the row in it.
    At((usize, usize)),
    Nowhere,
    /// It may stand in a bucket that is not locked.
    Further,
    Full,
}

impl<'a, T: Default> Locked<'a, T> {
    fn lock<'w>(
        table: &'a Table<T>,
        wanted: impl Iterator<Item = &'w Wanted<'w>>,
        choices: usize,
    ) -> Self {
        let mut buckets: Vec<usize> = wanted
            .flat_map(|wanted| (0..choices).map(|choice| table.bucket(wanted.print, choice)))
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        let buckets = buckets.into_iter().map(|bucket| (bucket, table.lock(bucket))).collect();
        Self { table, buckets }
    }

    fn seek(
        &mut self,
        print: u64,
        find: Find,
        choices: usize,
        now: u64,
        release: impl FnOnce(T),
    ) -> Sought {
        let at = |choice| {
            let bucket = self.table.bucket(print, choice);
            self.buckets.iter().position(|(locked, _)| *locked == bucket)
        };
        let places: [Option<usize>; CHOICES] =
            std::array::from_fn(|choice| if choice < choices { at(choice) } else { None });
        let places = || places.into_iter().flatten();
        for place in places() {
            if let Some(row) = self.buckets[place].1.find(print) {
                return Sought::At((place, row));
            }
        }
        let all = choices == CHOICES;
        if !all && places().any(|place| self.buckets[place].1.passed) {
            return Sought::Further;
        }
        if find == Find::Only {
            return Sought::Nowhere;
        }
        let tick = self.table.tick(now);
        for place in places() {
            let bucket = &mut self.buckets[place].1;
            if let Some((row, before)) = bucket.claim(print, tick) {
                release(before);
                return Sought::At((place, row));
            }
            bucket.passed |= all;
        }
        if all { Sought::Full } else { Sought::Further }
    }

    fn row(&mut self, (place, row): (usize, usize)) -> &mut T {
        self.buckets[place].1.row(row)
    }

    fn expire_at(&mut self, (place, row): (usize, usize), expiry: u32) {
        self.buckets[place].1.expire_at(row, expiry);
    }
}
