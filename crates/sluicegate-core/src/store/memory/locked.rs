//! Several buckets of a table, locked together, and the search for rows in them.

use smallvec::SmallVec;

use super::bucket::{Bucket, Guard};

use super::table::{CHOICES, Table, USUAL_LIMITS};

/// What to do if a row does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindMode {
    /// Do not make one.
    Existing,
    /// Do not make one, but use a row that the key shares with others.
    ExistingOrShared,
    /// Make one.
    OrInsert,
}

pub(super) enum SearchResult {
    Found(RowIndex),
    /// A row that was made for it and is empty.
    Inserted(RowIndex),
    Absent,
    /// The row may be in a bucket that is not locked.
    NotLocked,
    /// There is no room for another row.
    Full,
}

/// A locked bucket, and the row in it.
pub(super) type RowIndex = (usize, usize);

/// Buckets, locked in ascending order, which is the same in every thread.
pub(super) struct LockedBuckets<'a, B: Bucket> {
    table: &'a Table<B>,
    buckets: SmallVec<[(usize, Guard<'a, B>); USUAL_LIMITS]>,
    /// Rows that were found for this charge. Its other rows must not claim or move them.
    taken: SmallVec<[RowIndex; USUAL_LIMITS]>,
}

impl<'a, B: Bucket> LockedBuckets<'a, B> {
    /// Locks the first `choices` buckets of each fingerprint.
    pub(super) fn lock(
        table: &'a Table<B>,
        fingerprints: impl Iterator<Item = u64>,
        choices: usize,
    ) -> Self {
        let mut buckets: SmallVec<[usize; USUAL_LIMITS]> = fingerprints
            .flat_map(|fingerprint| {
                (0..choices).map(move |choice| table.choice(fingerprint, choice))
            })
            .collect();
        // In one order for all threads: two that need the same buckets cannot wait for each other.
        buckets.sort_unstable();
        buckets.dedup();
        let buckets = buckets.into_iter().map(|bucket| (bucket, table.lock(bucket))).collect();
        Self { table, buckets, taken: SmallVec::new() }
    }

    /// Searches the row in the first `choices` buckets of its fingerprint, which are locked. `release` is called with
    /// the content of a recovered row that had to make way.
    pub(super) fn seek(
        &mut self,
        fingerprint: u64,
        find: FindMode,
        choices: usize,
        now: u64,
        release: impl FnMut(B::Content),
    ) -> SearchResult {
        let tick = self.table.tick(now);
        let mut places = [0; CHOICES];
        for (choice, place) in places[..choices].iter_mut().enumerate() {
            // With several limits, another limit of the charge may have locked fewer of this one's buckets than are
            // asked for.
            let Some(locked) = self.locked(self.table.choice(fingerprint, choice)) else {
                return SearchResult::NotLocked;
            };
            *place = locked;
        }
        let found_at = self.search(fingerprint, find, &places[..choices], tick, release);
        if let SearchResult::Found(place) | SearchResult::Inserted(place) = found_at {
            self.taken.push(place);
        }
        found_at
    }

    fn search(
        &mut self,
        fingerprint: u64,
        find: FindMode,
        places: &[usize],
        tick: u32,
        mut release: impl FnMut(B::Content),
    ) -> SearchResult {
        // A row that moved may have left behind a recovered row with the same fingerprint. The live one counts.
        let live =
            |place: &usize| Some((*place, self.buckets[*place].1.find_live(fingerprint, tick)?));
        if let Some(at) = places.iter().find_map(live) {
            return SearchResult::Found(at);
        }
        // Only with all choices locked is it certain that the key has no row.
        let all = places.len() == CHOICES;
        if !all && places.iter().any(|place| self.buckets[*place].1.has_displaced(tick)) {
            return SearchResult::NotLocked;
        }
        // Before a free row: a key that comes back takes its old row, and leaves no second one with its fingerprint.
        if let Some(at) = self.recovered(fingerprint, places, tick, &mut release) {
            return SearchResult::Found(at);
        }
        if find != FindMode::OrInsert {
            return SearchResult::Absent;
        }
        // In the order of the choices. A row in its first bucket is found by one look for as long as it lives.
        let free = places.iter().find_map(|place| {
            let taken = |row| self.taken.contains(&(*place, row));
            let (row, before) = self.buckets[*place].1.claim_free(fingerprint, tick, taken)?;
            Some(((*place, row), before))
        });
        if let Some((at, before)) = free {
            release(before);
            return SearchResult::Inserted(at);
        }
        if !all {
            return SearchResult::NotLocked;
        }
        // One move and no chain of them, as textbook cuckoo hashing has: a chain would need the locks of buckets far
        // away, in an order that it finds out on the way. One move looks at four buckets times four rows times three
        // other choices, which are 48 buckets at most, and fills the table beyond its capacity all the same.
        match places.iter().find_map(|place| self.displace(*place, fingerprint, tick)) {
            Some((at, before)) => {
                release(before);
                SearchResult::Inserted(at)
            }
            None => SearchResult::Full,
        }
    }

    /// A recovered row of `fingerprint`. If there are several, all but one are cleared. A thread with an older time
    /// may still spend from one of them, and that one counts.
    fn recovered(
        &self,
        fingerprint: u64,
        places: &[usize],
        tick: u32,
        mut release: impl FnMut(B::Content),
    ) -> Option<RowIndex> {
        let find = |place: &usize| Some((*place, self.buckets[*place].1.find(fingerprint)?));
        let mut found = places.iter().filter_map(find);
        let first = found.next()?;
        let mut at = first;
        for (place, row) in found.filter(|other| *other != first) {
            let bucket = &self.buckets[place].1;
            match bucket.claim(row, fingerprint, tick) {
                Some(before) => {
                    release(before);
                    bucket.clear(row);
                }
                None => at = (place, row),
            }
        }
        Some(at)
    }

    /// Moves one row of a full bucket to another of its choices and gives its place to `fingerprint`. Returns the
    /// recovered content in the place that it moved to.
    fn displace(
        &mut self,
        place: usize,
        fingerprint: u64,
        tick: u32,
    ) -> Option<(RowIndex, B::Content)> {
        let (index, bucket) = &self.buckets[place];
        let index = *index;
        if bucket.is_stuck(tick) {
            return None;
        }
        // The first tick at which one of the rows that were looked at recovers; 0 if one of them is free, but could not
        // be used this time.
        let mut full_until = bucket.full_until(tick);
        for row in 0..B::ROWS {
            // Its place is written down for this charge already. Moving it would leave that pointing at another key.
            if self.taken.contains(&(place, row)) {
                full_until = 0;
                continue;
            }
            let mover = self.buckets[place].1.fingerprint_at(row);
            for choice in 0..CHOICES {
                let to = self.table.choice(mover, choice);
                if to == index {
                    continue;
                }
                if let Some(before) = self.move_row((place, row), mover, to, tick) {
                    // `lift` has cleared the row under this lock, and the fingerprint 0 keeps every thread from
                    // spending there.
                    self.table.note_moved(mover);
                    let nothing = self.buckets[place].1.claim(row, fingerprint, tick);
                    debug_assert!(nothing.is_some(), "it was cleared");
                    return Some(((place, row), before));
                }
                // Read without the lock of that bucket. If it is wrong, the bucket is searched once too often, or left
                // alone for four seconds at most.
                full_until = full_until.min(self.table.bucket(to).full_until(tick));
            }
        }
        self.buckets[place].1.note_stuck(tick, full_until);
        None
    }

    fn move_row(
        &mut self,
        (place, row): RowIndex,
        fingerprint: u64,
        to: usize,
        tick: u32,
    ) -> Option<B::Content> {
        let from = &self.buckets[place].1;
        if let Some(to) = self.locked(to) {
            let taken = |row| self.taken.contains(&(to, row));
            return move_to(&self.buckets[to].1, from, row, (fingerprint, tick), taken);
        }
        // Read without the lock, so this is only a guess, but nearly always right. In a full table, taking all these
        // locks in vain would be the larger part of the work of refusing a new key.
        let other = self.table.bucket(to);
        (0..B::ROWS).find(|row| other.is_free(*row, tick))?;
        // A thread that holds that bucket may be waiting for one of these, so this thread must not wait for it.
        move_to(&self.table.try_lock(to)?, from, row, (fingerprint, tick), |_| false)
    }

    /// The row of `fingerprint`, unless it has recovered. All of its buckets are locked.
    pub(super) fn find_live(&self, fingerprint: u64, now: u64) -> Option<RowIndex> {
        let tick = self.table.tick(now);
        (0..CHOICES).find_map(|choice| {
            let place = self.locked(self.table.choice(fingerprint, choice))?;
            Some((place, self.buckets[place].1.find_live(fingerprint, tick)?))
        })
    }

    /// Calls `look` with the content of a row, and leaves the content there.
    pub(super) fn look<R>(&self, (place, row): RowIndex, look: impl FnOnce(&B::Content) -> R) -> R {
        let bucket = &self.buckets[place].1;
        let (content, expiry) = bucket.take_with_expiry(row);
        let result = look(&content);
        bucket.put(row, content, expiry);
        result
    }

    /// Gives a free row of this bucket, which is locked, to `fingerprint`. It is a new table, so nothing was in the row.
    #[cfg(feature = "file")]
    pub(super) fn claim_in(&self, bucket: usize, fingerprint: u64, now: u64) -> Option<RowIndex> {
        let place = self.locked(bucket)?;
        let tick = self.table.tick(now);
        let (row, _) = self.buckets[place].1.claim_free(fingerprint, tick, |_| false)?;
        Some((place, row))
    }

    /// The bucket of a row.
    #[cfg(feature = "file")]
    pub(super) fn bucket(&self, place: usize) -> &B {
        &self.buckets[place].1
    }

    /// The number of that bucket.
    #[cfg(feature = "file")]
    pub(super) fn number(&self, place: usize) -> usize {
        self.buckets[place].0
    }

    /// Frees a row that was made for a charge.
    pub(super) fn give_up(&self, (place, row): RowIndex) {
        self.buckets[place].1.clear(row);
    }

    pub(super) fn take(&self, (place, row): RowIndex) -> B::Content {
        self.buckets[place].1.take(row)
    }

    /// Writes the new state of the row of `fingerprint`, and returns when it has recovered.
    pub(super) fn put(
        &self,
        (place, row): RowIndex,
        fingerprint: u64,
        content: B::Content,
        expiry: u32,
    ) {
        let first = self.table.choice(fingerprint, 0);
        // A thread that reads the first bucket must learn that the row may be elsewhere, and until when.
        if self.buckets[place].0 != first {
            if let Some(first) = self.locked(first) {
                self.buckets[first].1.note_displaced_until(expiry);
            }
        }
        self.buckets[place].1.put(row, content, expiry);
    }

    fn locked(&self, bucket: usize) -> Option<usize> {
        self.buckets.iter().position(|(locked, _)| *locked == bucket)
    }
}

/// Moves the row of `fingerprint` into a free row, and returns the recovered content of that one.
fn move_to<B: Bucket>(
    to: &Guard<'_, B>,
    from: &Guard<'_, B>,
    row: usize,
    (fingerprint, tick): (u64, u32),
    taken: impl Fn(usize) -> bool,
) -> Option<B::Content> {
    // The new place is claimed before the old one is emptied: a thread that reads without locks finds the row in one of
    // them, or a changed lock.
    let (free, before) = to.claim_free(fingerprint, tick, taken)?;
    let (content, expiry) = from.lift(row);
    to.put(free, content, expiry);
    Some(before)
}
