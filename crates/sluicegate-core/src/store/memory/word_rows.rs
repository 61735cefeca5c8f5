//! Which kind of row the state of a limit is kept in, and how two words are stored in it.

use super::bucket::Bucket;
use super::moment::Moment;
use super::one_word::{LAST, OneWord};
use super::row::{FourRows, TwoWords};
use super::table::{Table, ticks};
use crate::limit::{Limit, LimitInternals as _, Words};

/// The table that the row of a limit is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    OneWord,
    TwoWords,
    FullState,
}

impl RowKind {
    pub(super) fn of(limit: &Limit) -> Self {
        match limit.fits_one_word() {
            true => Self::OneWord,
            false if limit.has_extra_state() => Self::FullState,
            false => Self::TwoWords,
        }
    }
}

/// Rows that hold the two words of a limit, each kind in its own form.
pub(super) trait WordRows: Bucket {
    fn words(content: Self::Content, moment: Moment) -> Words;

    /// The content of a row for words that were decided at `now`, and the tick at which it has recovered.
    fn content(
        table: &Table<Self>,
        limit: &Limit,
        words: Words,
        moment: Moment,
        now: u64,
    ) -> (Self::Content, u32);

    /// The time that expiries are compared with.
    fn time(moment: Moment) -> u64;
}

impl WordRows for FourRows<TwoWords> {
    fn words(words: Words, _: Moment) -> Words {
        words
    }

    fn content(
        table: &Table<Self>,
        limit: &Limit,
        words: Words,
        _: Moment,
        now: u64,
    ) -> (Words, u32) {
        (words, table.expiry(limit.words_fresh_in(words, now), now))
    }

    fn time(moment: Moment) -> u64 {
        moment.now
    }
}

impl WordRows for OneWord {
    fn words(free_at: u64, moment: Moment) -> Words {
        match free_at.saturating_sub(moment.since) {
            0 => [0; 2],
            debt => [moment.now, debt],
        }
    }

    fn content(
        _: &Table<Self>,
        _: &Limit,
        [last, debt]: Words,
        Moment { now, since }: Moment,
        _: u64,
    ) -> (u64, u32) {
        // The words tell when they were written, which may be later than the moment.
        let free_at = match debt {
            0 => 0,
            debt => ((since + last).saturating_sub(now) + debt).min(LAST),
        };
        (free_at, ticks(free_at))
    }

    fn time(moment: Moment) -> u64 {
        moment.since
    }
}
