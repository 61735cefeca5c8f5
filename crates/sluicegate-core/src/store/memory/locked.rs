//! Some buckets of a table, locked together, and the search for rows in them.

use smallvec::SmallVec;

use super::bucket::{Bucket, Guard};
use super::locate::USUAL;
use super::table::{CHOICES, Table};

/// What a missing row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Find {
    /// Nothing was spent; none is made.
    Only,
    /// As little, and where the key is counted together with others, that is looked at.
    Look,
    /// One is made.
    OrInsert,
}

pub(super) enum Sought {
    At(Place),
    /// A row that was made for it, with nothing in it.
    New(Place),
    Nowhere,
    /// It may stand in a bucket that is not locked.
    Further,
    /// There is no room for another row.
    Full,
}

/// A locked bucket, and the row in it.
pub(super) type Place = (usize, usize);

/// Buckets locked in the order in which they stand, which is the same for everybody.
pub(super) struct Locked<'a, B: Bucket> {
    table: &'a Table<B>,
    buckets: SmallVec<[(usize, Guard<'a, B>); USUAL]>,
    /// Rows that were found for this charge: its other rows must not claim or move them.
    taken: SmallVec<[Place; USUAL]>,
}

impl<'a, B: Bucket> Locked<'a, B> {
    /// Locks the first `choices` buckets of each print.
    pub(super) fn lock(
        table: &'a Table<B>,
        prints: impl Iterator<Item = u64>,
        choices: usize,
    ) -> Self {
        let mut buckets: SmallVec<[usize; USUAL]> = prints
            .flat_map(|print| (0..choices).map(move |choice| table.choice(print, choice)))
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        let buckets = buckets.into_iter().map(|bucket| (bucket, table.lock(bucket))).collect();
        Self { table, buckets, taken: SmallVec::new() }
    }

    /// Looks for the row in the first `choices` buckets of its print, which are locked; `release` gets
    /// what stood in a recovered row that had to make way.
    pub(super) fn seek(
        &mut self,
        print: u64,
        find: Find,
        choices: usize,
        now: u64,
        release: impl FnMut(B::Content),
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
        if let Sought::At(place) | Sought::New(place) = sought {
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
        mut release: impl FnMut(B::Content),
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
        if let Some(at) = self.recovered(print, places, tick, &mut release) {
            return Sought::At(at);
        }
        if find != Find::OrInsert {
            return Sought::Nowhere;
        }
        let free = places.iter().find_map(|place| {
            let taken = |row| self.taken.contains(&(*place, row));
            let (row, before) = self.buckets[*place].1.claim_free(print, tick, taken)?;
            Some(((*place, row), before))
        });
        if let Some((at, before)) = free {
            release(before);
            return Sought::New(at);
        }
        if !all {
            return Sought::Further;
        }
        match places.iter().find_map(|place| self.make_way(*place, print, tick)) {
            Some((at, before)) => {
                release(before);
                Sought::New(at)
            }
            None => Sought::Full,
        }
    }

    /// A row of `print` that has recovered. Where there are several, no more than one is left: whoever
    /// goes by an older clock may yet spend from one, and that one counts.
    fn recovered(
        &self,
        print: u64,
        places: &[usize],
        tick: u32,
        mut release: impl FnMut(B::Content),
    ) -> Option<Place> {
        let find = |place: &usize| Some((*place, self.buckets[*place].1.find(print)?));
        let mut found = places.iter().filter_map(find);
        let first = found.next()?;
        let mut at = first;
        for (place, row) in found.filter(|other| *other != first) {
            let bucket = &self.buckets[place].1;
            match bucket.claim(row, print, tick) {
                Some(before) => {
                    release(before);
                    bucket.clear(row);
                }
                None => at = (place, row),
            }
        }
        Some(at)
    }

    /// Moves one row of a full bucket to another of its choices, makes its place that of `print`, and
    /// hands back what had recovered where it went.
    fn make_way(&mut self, place: usize, print: u64, tick: u32) -> Option<(Place, B::Content)> {
        let index = self.buckets[place].0;
        for row in 0..B::ROWS {
            if self.taken.contains(&(place, row)) {
                continue;
            }
            let mover = self.buckets[place].1.print_at(row);
            for choice in 0..CHOICES {
                let to = self.table.choice(mover, choice);
                if to == index {
                    continue;
                }
                if let Some(before) = self.move_row((place, row), mover, to, tick) {
                    let nothing = self.buckets[place].1.claim(row, print, tick);
                    debug_assert!(nothing.is_some(), "it was cleared");
                    return Some(((place, row), before));
                }
            }
        }
        None
    }

    fn move_row(
        &mut self,
        (place, row): Place,
        print: u64,
        to: usize,
        tick: u32,
    ) -> Option<B::Content> {
        let from = &self.buckets[place].1;
        if let Some(to) = self.locked(to) {
            let taken = |row| self.taken.contains(&(to, row));
            return move_to(&self.buckets[to].1, from, row, (print, tick), taken);
        }
        // Without the lock that is but a guess, and nearly always right: in a full table, taking all
        // these locks in vain would be the greater part of turning somebody away.
        let other = self.table.bucket(to);
        (0..B::ROWS).find(|row| other.is_free(*row, tick))?;
        // Whoever holds a bucket may wait for one of these: it must not be waited for.
        move_to(&self.table.try_lock(to)?, from, row, (print, tick), |_| false)
    }

    /// The row of `print`, unless it has recovered. All of its buckets are locked.
    pub(super) fn find_live(&self, print: u64, now: u64) -> Option<Place> {
        let tick = self.table.tick(now);
        (0..CHOICES).find_map(|choice| {
            let place = self.locked(self.table.choice(print, choice))?;
            Some((place, self.buckets[place].1.find_live(print, tick)?))
        })
    }

    /// Shows what stands in a row, and leaves it there.
    pub(super) fn look<R>(&self, (place, row): Place, look: impl FnOnce(&B::Content) -> R) -> R {
        let bucket = &self.buckets[place].1;
        let (content, expiry) = bucket.take_with_expiry(row);
        let result = look(&content);
        bucket.put(row, content, expiry);
        result
    }

    /// Makes a row nobody's again that was made for a charge.
    pub(super) fn give_up(&self, (place, row): Place) {
        self.buckets[place].1.clear(row);
    }

    pub(super) fn take(&self, (place, row): Place) -> B::Content {
        self.buckets[place].1.take(row)
    }

    /// Puts back what becomes of the row of `print`, and says when it has recovered.
    pub(super) fn put(&self, (place, row): Place, print: u64, content: B::Content, expiry: u32) {
        let first = self.table.choice(print, 0);
        if self.buckets[place].0 != first {
            if let Some(first) = self.locked(first) {
                self.buckets[first].1.pass_until(expiry);
            }
        }
        self.buckets[place].1.put(row, content, expiry);
    }

    fn locked(&self, bucket: usize) -> Option<usize> {
        self.buckets.iter().position(|(locked, _)| *locked == bucket)
    }
}

/// Moves the row of `print` into a free one, and hands back what had recovered there.
fn move_to<B: Bucket>(
    to: &Guard<'_, B>,
    from: &Guard<'_, B>,
    row: usize,
    (print, tick): (u64, u32),
    taken: impl Fn(usize) -> bool,
) -> Option<B::Content> {
    let (free, before) = to.claim_free(print, tick, taken)?;
    let (content, expiry) = from.lift(row);
    to.put(free, content, expiry);
    Some(before)
}
