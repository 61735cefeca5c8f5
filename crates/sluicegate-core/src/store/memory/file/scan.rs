//! Reading the tables for the file, while other threads decide.
//!
//! A bucket is read as decisions read it: between two looks at the version of its lock, or, where a state has more than two
//! words, under the lock. So no row is torn, and a decision waits for a copy of one bucket at most. Nothing marks what
//! changes, so decisions do no more than without a file: for each bucket a number is kept that is another one after a
//! change, eight bytes for three or four rows, and all buckets are compared with it.
//!
//! A row that is displaced while the table is read may be in neither of its two buckets when they are looked at. The table
//! notes which rows were displaced, and these are looked for at the end, with all buckets locked that they may be in.

use std::io;

use super::super::Inner;
use super::super::bucket::Bucket;
use super::super::locked::LockedBuckets;
use super::super::moment::Moment;
use super::super::one_word::OneWord;
use super::super::row::{FourRows, FullState, TwoWords};
use super::super::sync::spin;
use super::super::table::{CHOICES, NEVER, Table};
use super::format::{Kind, Pages, Times, mix, write_full_state, write_row, write_words};
use crate::limit::remote::StateFields;
use crate::limit::{State, Words, bounded};

/// How often a bucket is looked at without its lock while other threads use it.
const LOOKS: u32 = 64;

/// What is remembered of the tables as they were when they were read last.
#[derive(Debug, Default)]
pub(super) struct Scan {
    one_word: Vec<u64>,
    two_words: Vec<u64>,
    full_state: Vec<u64>,
    shared: Vec<u64>,
}

/// Which buckets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    Changed,
}

impl Scan {
    /// Writes the rows of `inner` as one group, unless nothing has changed. Returns whether there was anything to write.
    pub(super) fn write(
        &mut self,
        inner: &Inner,
        extent: Extent,
        pages: &mut Pages<'_>,
    ) -> io::Result<bool> {
        let mut reading = Reading { inner, extent, pages, rows: Vec::new() };
        reading.table(Kind::OneWord, &inner.one_word, &mut self.one_word)?;
        reading.table(Kind::TwoWords, &inner.two_words, &mut self.two_words)?;
        reading.table(Kind::FullState, &inner.full_state, &mut self.full_state)?;
        reading.table(Kind::Shared, &inner.shared_rows.table, &mut self.shared)?;
        if extent == Extent::Changed && pages.is_empty() {
            return Ok(false);
        }
        // After all rows were read, so that none is of a later time.
        pages.finish(inner.times())?;
        Ok(true)
    }
}

impl Inner {
    pub(super) fn times(&self) -> Times {
        Times { store: self.moment().now, wall: self.clock.clock.wall() }
    }
}

struct Reading<'a, 'w> {
    inner: &'a Inner,
    extent: Extent,
    pages: &'a mut Pages<'w>,
    /// The rows of one bucket, to be reused.
    rows: Vec<u8>,
}

impl Reading<'_, '_> {
    fn table<B: SavedRows>(
        &mut self,
        kind: Kind,
        table: &Table<B>,
        marks: &mut Vec<u64>,
    ) -> io::Result<()> {
        table.take_moved();
        let Some(buckets) = table.allocated() else { return Ok(()) };
        marks.resize(buckets.len(), 0);
        for (number, (bucket, mark)) in buckets.iter().zip(marks).enumerate() {
            self.bucket(table, bucket, (kind, number), mark)?;
        }
        let moved = table
            .take_moved()
            .ok_or_else(|| io::Error::other("too many rows were displaced while they were read"))?;
        moved.into_iter().try_for_each(|fingerprint| self.moved(kind, table, fingerprint))
    }

    /// Writes a bucket, if it has changed.
    fn bucket<B: SavedRows>(
        &mut self,
        table: &Table<B>,
        bucket: &B,
        place: (Kind, usize),
        mark: &mut u64,
    ) -> io::Result<()> {
        for _ in 0..LOOKS {
            let Some(version) = bucket.version() else {
                spin();
                continue;
            };
            let new = bucket.mark(version.number());
            if new == *mark && self.extent == Extent::Changed {
                return Ok(());
            }
            if B::IS_READ_LOCKED {
                break;
            }
            let moment = self.inner.moment();
            let rows = self.rows_of(table, bucket, moment);
            if bucket.is_unchanged(version) {
                *mark = new;
                return self.write(place, false, rows, moment);
            }
        }
        let locked = bucket.lock();
        *mark = locked.mark(locked.bucket_lock().next_number());
        let moment = self.inner.moment();
        let rows = self.rows_of(table, &*locked, moment);
        drop(locked);
        self.write(place, false, rows, moment)
    }

    /// Copies the rows of a bucket that have not recovered, and returns how many there are.
    fn rows_of<B: SavedRows>(&mut self, table: &Table<B>, bucket: &B, moment: Moment) -> u8 {
        self.rows.clear();
        let copied = (0..B::ROWS)
            .filter(|row| bucket.copy_row(self.inner, table, *row, moment, &mut self.rows));
        copied.count() as u8
    }

    fn write(
        &mut self,
        place: (Kind, usize),
        is_added: bool,
        rows: u8,
        moment: Moment,
    ) -> io::Result<()> {
        // In a new file, no bucket has rows that had to be replaced.
        if rows == 0 && (is_added || self.extent == Extent::All) {
            return Ok(());
        }
        let times = Times { store: moment.now, wall: 0 };
        self.pages.bucket(place, is_added, rows, &self.rows, times)
    }

    /// Writes a row that was displaced, wherever it is now.
    fn moved<B: SavedRows>(
        &mut self,
        kind: Kind,
        table: &Table<B>,
        fingerprint: u64,
    ) -> io::Result<()> {
        let moment = self.inner.moment();
        self.rows.clear();
        let locked = LockedBuckets::lock(table, std::iter::once(fingerprint), CHOICES);
        let found = locked.find_live(fingerprint, B::time(moment));
        let found = found.filter(|(place, row)| {
            locked.bucket(*place).copy_row(self.inner, table, *row, moment, &mut self.rows)
        });
        let Some((place, _)) = found else { return Ok(()) };
        let number = locked.number(place);
        drop(locked);
        self.write((kind, number), true, 1, moment)
    }
}

/// A bucket of rows that are kept in a file.
pub(super) trait SavedRows: Bucket {
    /// Whether rows can be read under the lock only.
    const IS_READ_LOCKED: bool;

    /// A number that is another one after a change, if the lock has that version.
    fn mark(&self, version: u64) -> u64 {
        version
    }

    /// The time that expiries are compared with.
    fn time(moment: Moment) -> u64 {
        moment.now
    }

    /// Appends a row, unless it is empty or has recovered. Returns whether it was there.
    fn copy_row(
        &self,
        inner: &Inner,
        table: &Table<Self>,
        row: usize,
        moment: Moment,
        bytes: &mut Vec<u8>,
    ) -> bool;
}

impl SavedRows for OneWord {
    const IS_READ_LOCKED: bool = false;

    /// A word is written without the lock, so its version says nothing. An empty bucket has the mark 0.
    fn mark(&self, _: u64) -> u64 {
        (0..Self::ROWS).fold(0_u64, |mark, row| {
            let fingerprint = self.fingerprint_at(row);
            let free_at = self.see(row, fingerprint).map_or(u64::MAX, |word| word.free_at());
            let free_at = if fingerprint == 0 { 0 } else { free_at };
            mix(mix(mark, fingerprint), free_at)
        })
    }

    fn time(moment: Moment) -> u64 {
        moment.since
    }

    fn copy_row(
        &self,
        _: &Inner,
        _: &Table<Self>,
        row: usize,
        Moment { now, since }: Moment,
        bytes: &mut Vec<u8>,
    ) -> bool {
        let fingerprint = self.fingerprint_at(row);
        if fingerprint == 0 {
            return false;
        }
        let left =
            self.see(row, fingerprint).map_or(0, |word| word.free_at().saturating_sub(since));
        if left > 0 {
            write_row(fingerprint, now + left, bytes);
        }
        left > 0
    }
}

/// Whether the words say what requests hold, and nothing else. Requests end with the process.
///
/// Such a row does not recover by itself, as one does that takes more than nine years. But of what is held, the second word
/// is unused, and whatever recovers has something in it.
fn is_held(expiry: u32, words: Words) -> bool {
    expiry == NEVER && words[0] > 0 && words[1] == 0
}

/// How long refusals of a key that holds places are kept that count towards a ban. How long they count is not in the row.
const STRIKES: u64 = 24 * 60 * 60 * 1_000_000;

/// When nothing is left of a ban, a gap or refusals that count towards a ban.
fn kept_out_until(state: &State) -> u64 {
    let StateFields { ban, gap, strikes, .. } = StateFields::from(state);
    // A gap is a bucket of one, of which one microsecond drains in each.
    let of_both = [ban, gap].map(|[since, lasts]| since.saturating_add(lasts));
    let [since, count] = strikes;
    let of_strikes = if count > 0 { since.saturating_add(STRIKES) } else { 0 };
    bounded(of_both.into_iter().fold(of_strikes, u64::max))
}

/// When a row has recovered.
fn until<B: Bucket>(table: &Table<B>, expiry: u32) -> u64 {
    if expiry == NEVER { bounded(u64::MAX) } else { table.moment_of(expiry) }
}

impl SavedRows for FourRows<TwoWords> {
    const IS_READ_LOCKED: bool = false;

    fn copy_row(
        &self,
        _: &Inner,
        table: &Table<Self>,
        row: usize,
        Moment { now, .. }: Moment,
        bytes: &mut Vec<u8>,
    ) -> bool {
        let (expiry, words) = (self.expiry_at(row), self.words(row));
        if self.is_free(row, table.tick(now)) || is_held(expiry, words) {
            return false;
        }
        write_row(self.fingerprint_at(row), until(table, expiry), bytes);
        write_words(words, bytes);
        true
    }
}

impl SavedRows for FourRows<FullState> {
    const IS_READ_LOCKED: bool = true;

    fn copy_row(
        &self,
        inner: &Inner,
        table: &Table<Self>,
        row: usize,
        Moment { now, .. }: Moment,
        bytes: &mut Vec<u8>,
    ) -> bool {
        if self.is_free(row, table.tick(now)) {
            return false;
        }
        let expiry = self.expiry_at(row);
        let copied = self.look(row, |state| {
            let without_places;
            let (state, until) = if is_held(expiry, state.words) {
                let mut state = state.clone();
                state.words = Words::default();
                without_places = state;
                (&without_places, kept_out_until(&without_places))
            } else {
                (state, until(table, expiry))
            };
            if until <= now {
                return false;
            }
            write_row(self.fingerprint_at(row), until, bytes);
            let class = state.log.as_ref().map(|log| log.class());
            write_full_state(state, class.map_or(0, |class| inner.log_budget.id_of(class)), bytes);
            true
        });
        copied.unwrap_or(false)
    }
}
