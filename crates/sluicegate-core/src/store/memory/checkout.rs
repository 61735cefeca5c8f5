//! The state of a row, taken out of the table for one decision.

use super::locked::RowIndex;
use super::log_budget::Reserved;
use crate::limit::{Limit, State, Words};
use crate::store::charge::Debit;

/// A row's state, taken out for one decision.
pub(super) struct Checkout {
    pub(super) state: State,
    pub(super) place: Option<RowIndex>,
    /// Whether the state can record one more charge.
    pub(super) has_room: bool,
    /// The row shared with other keys, if the state is that row's.
    pub(super) shared_row: Option<RowIndex>,
    /// What was held when the state was taken out.
    pub(super) held: u64,
    /// The state that a new row begins with, if its key was counted together with other keys before.
    pub(super) seed: Option<Box<State>>,
    /// The room of the log, taken from the budget.
    pub(super) counted: Reserved,
    /// The allocation of a state with more than two words, to be reused for putting it back.
    pub(super) kept: Option<Box<State>>,
}

impl Checkout {
    pub(super) fn of_words(words: Words, place: Option<RowIndex>) -> Self {
        let state = State::of(words);
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

    /// Marks a new row, which is freed again if nothing is written to it.
    pub(super) fn begun_with(self, seed: Option<Box<State>>) -> Self {
        Self { seed, ..self }
    }

    /// Whether the state is that of a row that several keys share.
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
