//! Putting the rows of a file into new tables, before any other thread sees them.

use super::super::Inner;
use super::super::locked::{FindMode, LockedBuckets, SearchResult};
use super::super::one_word::LAST;
use super::super::table::{CHOICES, Table, ticks};
use super::format::{Content, Kind, SavedRow};
use super::read::Saved;
use super::scan::SavedRows;

/// The rows for which there was no room, because the store was made for fewer keys than the one that wrote the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Forgotten(pub(super) usize);

impl Inner {
    /// Takes over the rows that have not recovered by `resumed`, the time at which that of the file goes on. The time of
    /// this store is an earlier one if no row was left and the clock is behind.
    pub(super) fn restore(&self, saved: &Saved<'_>, resumed: u64) -> Forgotten {
        let mut forgotten = Forgotten::default();
        let recovered = resumed.max(self.base);
        for (kind, bucket, row) in saved.rows().filter(|(.., row)| row.until > recovered) {
            if !self.restore_row((kind, bucket), row) {
                forgotten.0 += 1;
            }
        }
        forgotten
    }

    fn restore_row(
        &self,
        (kind, bucket): (Kind, usize),
        SavedRow { fingerprint, until, content }: SavedRow,
    ) -> bool {
        // The store is as old as its base, and so are its tables.
        let left = until - self.base;
        let expiry = ticks(left).max(1);
        match content {
            Content::OneWord => {
                let free_at = left.min(LAST);
                insert(&self.one_word, 0, (fingerprint, bucket), (free_at, expiry)).is_ok()
            }
            Content::TwoWords(words) => {
                insert(&self.two_words, self.base, (fingerprint, bucket), (words, expiry)).is_ok()
            }
            Content::FullState { mut state, limit } => {
                let table = match kind {
                    Kind::Shared => &self.shared_rows.table,
                    Kind::OneWord | Kind::TwoWords | Kind::FullState => &self.full_state,
                };
                self.count_restored(&mut state, limit);
                if kind == Kind::Shared {
                    self.shared_rows.note_restored(expiry);
                }
                let inserted =
                    insert(table, self.base, (fingerprint, bucket), (Some(state), expiry));
                let is_in = inserted.is_ok();
                let (Ok(other) | Err(other)) = inserted;
                self.release(other);
                is_in
            }
        }
    }
}

/// Puts a row into a table. A row can be there already, if it moved while it was written; the one that lasts longer stays.
/// Returns the content that was not used, as an error if there was no room.
///
/// It goes to the bucket that it was in, if the new table has as many: a full table had moved rows until all of them fitted.
fn insert<B: SavedRows>(
    table: &Table<B>,
    now: u64,
    (fingerprint, bucket): (u64, usize),
    (content, expiry): (B::Content, u32),
) -> Result<B::Content, B::Content> {
    let tick = table.tick(now);
    let first = table.choice(fingerprint, 0);
    let mut choices = (1..CHOICES).map(|choice| table.choice(fingerprint, choice));
    let bucket = if choices.any(|choice| choice == bucket) { bucket } else { first };
    if bucket == first {
        // Rows come in the order of their buckets, and most are in their first one, so this finds it in the cache.
        let first = table.lock(first);
        if !first.has_displaced(tick) && first.find(fingerprint).is_none() {
            if let Some((row, before)) = first.claim_free(fingerprint, tick, |_| false) {
                first.put(row, content, expiry);
                return Ok(before);
            }
        }
    }
    let mut locked = LockedBuckets::lock(table, std::iter::once(fingerprint), CHOICES);
    let mut released = B::Content::default();
    let release = |content| released = content;
    let at = match locked.find_live(fingerprint, now) {
        None => locked.claim_in(bucket, fingerprint, now).map(SearchResult::Inserted),
        Some(at) => Some(SearchResult::Found(at)),
    };
    let at =
        at.unwrap_or_else(|| locked.seek(fingerprint, FindMode::OrInsert, CHOICES, now, release));
    match at {
        SearchResult::Found((place, row)) if locked.bucket(place).expiry_at(row) >= expiry => {
            Ok(content)
        }
        SearchResult::Found(at) => {
            let before = locked.take(at);
            locked.put(at, fingerprint, content, expiry);
            Ok(before)
        }
        SearchResult::Inserted(at) => {
            locked.put(at, fingerprint, content, expiry);
            Ok(released)
        }
        SearchResult::Absent | SearchResult::Full | SearchResult::NotLocked => Err(content),
    }
}
