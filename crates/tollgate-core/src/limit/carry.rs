//! What was spent is carried over when the numbers of a limit change: whoever finds a row that other
//! numbers have written converts it, and goes on from there.

use super::exact::bounded;
use super::make::valid;
use super::shape::Shape;
use super::state::{State, Written};
use super::{Cell, Enter, Limit, LimitError};

impl Limit {
    /// Carries over what was spent when the limit's numbers change (a rate, a burst, a count, a period), as
    /// they do when a file is reloaded, a customer moves to another tier, or other hours begin.
    ///
    /// What is kept of a key then belongs to the limit's name and algorithm alone, and knows the numbers of
    /// the limit that wrote it. One that finds others goes on with what was spent until then: a bucket with
    /// the debt that is left, token for token; a bucket refilled in steps and a window with what is spent in
    /// it now. Logs keep their stamps, as long as their resolution is the same, and what is held stays held.
    /// Steps and windows that begin with the first request go on as they have begun, or begin anew where they
    /// would be over by the new numbers.
    ///
    /// A request that does not fit beside what is spent changes nothing, unless it comes in as early or
    /// earlier by the new numbers: what was spent goes on by those that wrote it, a window until its end, and
    /// the request is told when it fits by these. So whoever has spent half a million of a million a day, and
    /// is moved to ten a day, is shut out until all but nine of them have drained at a million a day; asking
    /// meanwhile puts nothing off. While more is spent than the new numbers allow nothing remains, and nothing
    /// can be booked ahead, be one ever so patient. Who is moved back before that finds all as it was.
    /// Refused attempts are not [counted](Self::count_refused) by numbers that others wrote.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Limit;
    ///
    /// let paid = Limit::per_minute(600).named("plan").carried();
    /// let free = Limit::per_minute(10).named("plan").carried();
    ///
    /// let mut state = paid.fresh();
    /// assert!(paid.take(&mut state, 0, 600).is_admitted());
    /// // All but nine of six hundred drain at ten a second.
    /// let refused = free.take(&mut state, 0, 1);
    /// assert_eq!(refused.retry_after(), Some(Duration::from_millis(59_100)));
    /// ```
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

    /// Makes the state one of this limit's numbers, if others have written it and a request of `cost` comes in
    /// no later by these.
    pub(super) fn carry(&self, state: &mut State, now: u64, cost: u64) {
        if !self.is_foreign(state) || self.is_no_later(state, now, cost) {
            self.convert(state, now);
        }
    }

    /// Makes the state one of this limit's numbers, if others have written it and what is spent fits.
    pub(super) fn convert(&self, state: &mut State, now: u64) {
        if let Some((cell, written)) = self.converted(state, now) {
            (state.cell, state.written) = (cell, written);
        }
    }

    /// Whether a charge of that mark can be told in the state as it is.
    pub(super) fn knows(&self, state: &State, since: u64, now: u64) -> bool {
        let is_known = |(_, written): (Cell, Written)| written.since == since;
        !self.carried || self.converted(state, now).is_some_and(is_known)
    }

    /// Whether the state goes by the numbers of another limit, which has written it.
    pub(super) fn is_foreign(&self, state: &State) -> bool {
        let numbers = state.written.numbers;
        self.carried && numbers != [0; 3] && numbers != self.shape.numbers()
    }

    /// The shape that says what the state means, which may have been written by other numbers.
    pub(super) fn shape_of(&self, state: &State) -> Shape {
        if self.is_foreign(state) { self.shape.by(state.written.numbers) } else { self.shape }
    }

    /// What the shape sees of the state: a foreign one as it would be converted. `None` where more is spent
    /// than fits.
    pub(super) fn seen(&self, state: &State, now: u64) -> Option<State> {
        let (cell, _) = self.converted(state, now)?;
        Some(State { cell, ..State::default() })
    }

    /// When `cost` fits into a foreign state, with nobody spending.
    pub(super) fn fits(&self, state: &State, now: u64, cost: u64) -> Enter {
        self.shape.fits(state.cell, state.written.numbers, now, cost)
    }

    /// Whether a request comes in no later once a foreign state is converted.
    fn is_no_later(&self, state: &State, now: u64, cost: u64) -> bool {
        let Some(seen) = self.seen(state, now) else { return false };
        match (self.shape.enter(&seen, now, cost, 0), self.fits(state, now, cost)) {
            (Enter::At(converted), Enter::At(left)) => converted <= left,
            _ => false,
        }
    }

    fn converted(&self, state: &State, now: u64) -> Option<(Cell, Written)> {
        let State { cell, written, .. } = *state;
        let numbers = self.shape.numbers();
        if written.numbers == numbers {
            return Some((cell, written));
        }
        if written.numbers == [0; 3] {
            return Some((cell, Written { numbers, since: now }));
        }
        let (cell, is_same) = self.shape.carried(cell, written.numbers, now)?;
        let since = if is_same { written.since } else { bounded(now.max(written.since + 1)) };
        Some((cell, Written { numbers, since }))
    }
}
