//! Some buckets of a table, locked together, and the search for rows in them.

use super::bucket::{Guard, ROWS};
use super::row::Row;
use super::table::{CHOICES, Table};

/// What a missing row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Find {
    /// Nothing was spent; none is made.
    Only,
    /// One is made.
    OrInsert,
}

pub(super) enum Sought {
    At(Place),
    Nowhere,
    /// It may stand in a bucket that is not locked.
    Further,
    /// There is no room for another row.
    Full,
}

/// A locked bucket, and the row in it.
pub(super) type Place = (usize, usize);

/// Buckets locked in the order in which they stand, which is the same for everybody.
pub(super) struct Locked<'a, R: Row> {
    table: &'a Table<R>,
    buckets: Vec<(usize, Guard<'a, R>)>,
    /// Rows that were found for this charge: its other rows must not claim or move them.
    taken: Vec<Place>,
}

impl<'a, R: Row> Locked<'a, R> {
    /// Locks the first `choices` buckets of each print.
    pub(super) fn lock(
        table: &'a Table<R>,
        prints: impl Iterator<Item = u64>,
        choices: usize,
    ) -> Self {
        let mut buckets: Vec<usize> = prints
            .flat_map(|print| (0..choices).map(move |choice| table.choice(print, choice)))
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        let buckets = buckets.into_iter().map(|bucket| (bucket, table.lock(bucket))).collect();
        Self { table, buckets, taken: Vec::new() }
    }

    /// Looks for the row in the first `choices` buckets of its print, which are locked; `release` gets
    /// what stood in a recovered row that had to make way.
    pub(super) fn seek(
        &mut self,
        print: u64,
        find: Find,
        choices: usize,
        now: u64,
        release: impl FnOnce(R::Content),
    ) -> Sought {
        let tick = self.table.tick(now);
        let mut places = [0; CHOICES];
        for (choice, place) in places[..choices].iter_mut().enumerate() {
            let Some(locked) = self.locked(self.table.choice(print, choice)) else {
                return Sought::Further;
            };
            *place = locked;
        }
        let sought = self.search(print, find, &places[..choices], tick, release);
        if let Sought::At(place) = sought {
            self.taken.push(place);
        }
        sought
    }

    fn search(
        &mut self,
        print: u64,
        find: Find,
        places: &[usize],
        tick: u32,
        release: impl FnOnce(R::Content),
    ) -> Sought {
        // A row that has moved may have left another behind that had recovered: the live one counts.
        let live = |place: &usize| Some((*place, self.buckets[*place].1.find_live(print, tick)?));
        if let Some(at) = places.iter().find_map(live) {
            return Sought::At(at);
        }
        let all = places.len() == CHOICES;
        if !all && places.iter().any(|place| self.buckets[*place].1.is_passed(tick)) {
            return Sought::Further;
        }
        let recovered = |place: &usize| Some((*place, self.buckets[*place].1.find(print)?));
        if let Some(at) = places.iter().find_map(recovered) {
            return Sought::At(at);
        }
        if find == Find::Only {
            return Sought::Nowhere;
        }
        let free = places.iter().find_map(|place| {
            let taken = |row| self.taken.contains(&(*place, row));
            Some((*place, self.buckets[*place].1.free(tick, taken)?))
        });
        if let Some((place, row)) = free {
            release(self.buckets[place].1.claim(row, print));
            return Sought::At((place, row));
        }
        if !all {
            return Sought::Further;
        }
        match places.iter().find_map(|place| self.make_way(*place, tick)) {
            Some(((place, row), before)) => {
                release(before);
                self.buckets[place].1.claim(row, print);
                Sought::At((place, row))
            }
            None => Sought::Full,
        }
    }

    /// Moves one row of a full bucket to another of its choices, and hands back what had recovered
    /// there.
    fn make_way(&mut self, place: usize, tick: u32) -> Option<(Place, R::Content)> {
        let index = self.buckets[place].0;
        for row in 0..ROWS {
            if self.taken.contains(&(place, row)) {
                continue;
            }
            let print = self.buckets[place].1.print_at(row);
            for choice in 0..CHOICES {
                let to = self.table.choice(print, choice);
                if to == index {
                    continue;
                }
                if let Some(before) = self.move_row((place, row), to, tick) {
                    return Some(((place, row), before));
                }
            }
        }
        None
    }

    fn move_row(&mut self, (place, row): Place, to: usize, tick: u32) -> Option<R::Content> {
        let before = if let Some(to) = self.locked(to) {
            let taken = |row| self.taken.contains(&(to, row));
            let free = self.buckets[to].1.free(tick, taken)?;
            let lifted = self.buckets[place].1.lift(row);
            self.buckets[to].1.put(free, lifted)
        } else {
            // Without the lock that is but a guess, and nearly always right: in a full table, taking all
            // these locks in vain would be the greater part of turning somebody away.
            self.table.bucket(to).free(tick, |_| false)?;
            // Whoever holds a bucket may wait for one of these: it must not be waited for.
            let other = self.table.try_lock(to)?;
            let free = other.free(tick, |_| false)?;
            let lifted = self.buckets[place].1.lift(row);
            other.put(free, lifted)
        };
        Some(before)
    }

    pub(super) fn row(&self, (place, row): Place) -> &R {
        self.buckets[place].1.row(row)
    }

    /// Says when the row of `print` has recovered.
    pub(super) fn expire_at(&mut self, (place, row): Place, print: u64, expiry: u32) {
        self.buckets[place].1.expire_at(row, expiry);
        let first = self.table.choice(print, 0);
        if self.buckets[place].0 == first {
            return;
        }
        if let Some(first) = self.locked(first) {
            self.buckets[first].1.pass_until(expiry);
        }
    }

    pub(super) fn table(&self) -> &'a Table<R> {
        self.table
    }

    fn locked(&self, bucket: usize) -> Option<usize> {
        self.buckets.iter().position(|(locked, _)| *locked == bucket)
    }
}
