//! What was spent is carried over when the numbers of a limit change: whoever finds a row that other
//! numbers have written converts it, and goes on from there.

use super::exact::bounded;
use super::make::valid;
use super::shape::Shape;
use super::state::{State, Written};
use super::{Cell, Limit, LimitError};

impl Limit {
    /// Carries over what was spent when the limit's numbers change (a rate, a burst, a count, a period), as
    /// they do when a file is reloaded, a customer moves to another tier, or other hours begin.
    ///
    /// What is kept of a key then belongs to the limit's name and algorithm alone, and knows the numbers of
    /// the limit that wrote it. One that finds others goes on with what was spent until then: a bucket with
    /// the debt that is left, token for token; a bucket refilled in steps and a window with what is spent in
    /// it now. What is spent beyond the new numbers stays owed. Logs keep their stamps, as
    /// long as their resolution is the same, and what is held stays held. Steps and windows that begin with the first request go on as they have begun, or begin
    /// anew where they would be over by the new numbers.
    ///
    /// What was charged before a change is given back after it by logs and concurrency, and by a window whose
    /// period is the same; a bucket, of which nobody can tell any more whose part has drained, gives none of
    /// it back.
    ///
    /// Needs a [name](Self::named), given before or in the same text.
    ///
    /// ```
    /// use tollgate_core::Limit;
    ///
    /// let free = Limit::per_minute(10).named("plan").carried();
    /// let paid = Limit::per_minute(600).named("plan").carried();
    ///
    /// let mut state = free.fresh();
    /// assert!(free.take(&mut state, 0, 4).is_admitted());
    /// assert_eq!(paid.take(&mut state, 0, 1).remaining(), Some(595));
    /// assert_eq!(free.take(&mut state, 0, 1).remaining(), Some(4));
    /// ```
    ///
    /// # Panics
    ///
    /// When the limit has no name.
    #[track_caller]
    pub const fn carried(self) -> Self {
        valid(self.try_carried())
    }

    /// [`carried`](Self::carried) for values from configuration.
    ///
    /// # Errors
    ///
    /// When the limit has no name.
    pub const fn try_carried(mut self) -> Result<Self, LimitError> {
        self.carried = true;
        self.checked()
    }

    /// Whether what was spent is [carried](Self::carried) over.
    pub const fn is_carried(&self) -> bool {
        self.carried
    }

    /// Makes the state one of this limit's numbers, if others have written it.
    pub(super) fn carry(&self, state: &mut State, now: u64) {
        (state.cell, state.written) = self.converted(state, now);
    }

    /// Whether a charge of that mark can be told in the state as it is.
    pub(super) fn knows(&self, state: &State, since: u64, now: u64) -> bool {
        !self.carried || self.converted(state, now).1.since == since
    }

    /// The shape that says what the state means, which may have been written by other numbers.
    pub(super) fn shape_of(&self, state: &State) -> Shape {
        let numbers = state.written.numbers;
        let is_own = !self.carried || numbers == [0; 3] || numbers == self.shape.numbers();
        if is_own { self.shape } else { self.shape.by(numbers) }
    }

    fn converted(&self, state: &State, now: u64) -> (Cell, Written) {
        let State { cell, written, .. } = *state;
        let numbers = self.shape.numbers();
        if written.numbers == numbers {
            return (cell, written);
        }
        if written.numbers == [0; 3] {
            return (cell, Written { numbers, since: now });
        }
        let (cell, is_same) = self.shape.carried(cell, written.numbers, now);
        let since = if is_same { written.since } else { bounded(now.max(written.since + 1)) };
        (cell, Written { numbers, since })
    }
}
