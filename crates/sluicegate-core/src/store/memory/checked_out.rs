//! The state of a row, checked out of the table for the time of one decision.

use super::locked::RowIndex;
use super::log_budget::Reserved;
use crate::limit::{Limit, State, Words};
use crate::store::charge::Debit;

/// A row's state, taken out for the time of a decision.
pub(super) struct CheckedOut {
    pub(super) state: State,
    pub(super) place: Option<RowIndex>,
    /// Whether one more charge can be written down.
    pub(super) has_room: bool,
    /// The row that is shared with other keys, if the state is that row's.
    pub(super) shared_row: Option<RowIndex>,
    /// What was held when the state was taken out.
    pub(super) held: u64,
    /// What a row that was made for this decision began with, as a key may have to that was counted together
    /// with others.
    pub(super) seed: Option<Box<State>>,
    /// What the log is counted with.
    pub(super) counted: Reserved,
    /// What the state of a limit that remembers more is kept in, to be put back into it.
    pub(super) kept: Option<Box<State>>,
}

impl CheckedOut {
    pub(super) fn of_words(words: Words, place: Option<RowIndex>) -> Self {
        let state = State { words, ..State::default() };
        let (has_room, held) = (place.is_some(), words[0]);
        Self {
            state,
            has_room,
            place,
            shared_row: None,
            held,
            seed: None,
            counted: Reserved::default(),
            kept: None,
        }
    }

    /// The state of a row that several keys share.
    pub(super) fn in_shared_row(self, place: RowIndex) -> Self {
        Self { place: None, shared_row: Some(place), ..self }
    }

    /// Marks a new row, to be freed again if nothing is written to it.
    pub(super) fn begun_with(self, seed: Option<Box<State>>) -> Self {
        Self { seed, ..self }
    }

    /// Whether the state is that of a row which several keys share.
    pub(super) fn is_shared(&self) -> bool {
        self.shared_row.is_some()
    }

    /// Whether the row is new and nothing was written to it.
    pub(super) fn is_in_vain(&self) -> bool {
        self.seed.as_ref().is_some_and(|seed| **seed == self.state)
    }
}

pub(super) struct Target<'a> {
    pub(super) debit: &'a Debit,
    pub(super) limit: &'a Limit,
    pub(super) fingerprint: u64,
}
