//! Limits on trial: they are counted, and report what they would refuse.
//!
//! `decide` passes over a limit on trial where limits agree on a moment, and asks it by itself afterwards:
//! it is charged if it admits the request at once, and otherwise only reports. The limit shares its row
//! with the limit that it becomes. What was not charged has a void receipt, which settles nothing.
//! (`Rejection::shadow` is for the whole layer: there, a refused request is charged to none of its limits.)

use super::check::valid;
use super::definition::Limit;
use super::error::LimitError;

impl Limit {
    /// Tries the limit on real traffic: it never refuses a request or makes it wait. Its
    /// [`LimitStatus`](super::LimitStatus::shadowed) tells the operator, and not clients, what it would have done.
    ///
    /// It is charged with what is admitted and what it would let in at once by itself; the other limits of
    /// the charge are decided as if it were not there. What it records of refusals (strikes, bans, refused
    /// attempts that count), it records of those that it would have refused.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use sluicegate::Limit;
    ///
    /// let limit = Limit::per_minute(1).shadow();
    /// let mut state = limit.fresh();
    /// let told = [(); 2].map(|()| limit.take(&mut state, 0, 1));
    /// assert!(told.iter().all(|decision| decision.is_admitted()));
    /// let shadowed = told.map(|decision| decision.statuses().all(|status| status.shadowed));
    /// assert_eq!(shadowed, [false, true]);
    /// ```
    #[track_caller]
    pub const fn shadow(self) -> Self {
        valid(self.try_shadow())
    }

    /// Like [`shadow`](Self::shadow), for values from configuration.
    ///
    /// # Errors
    ///
    /// None at present: every limit can be a shadow.
    pub const fn try_shadow(mut self) -> Result<Self, LimitError> {
        self.shadow = true;
        self.checked()
    }

    /// Whether the limit is a [shadow](Self::shadow).
    #[inline]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }
}
