use std::future::Ready;

use super::error::StoreError;
use crate::limit::Outcome;

/// The answer of a store: an outcome, or a future of one.
#[derive(Debug)]
#[must_use]
pub enum Answer<F> {
    /// The store is in this process: no future is made, boxed or polled.
    Now(Result<Outcome, StoreError>),
    /// The store is elsewhere: await the future.
    Later(F),
}

/// The future of a store that always answers [`Now`](Answer::Now): it is never made.
pub(crate) type Never = Ready<Result<Outcome, StoreError>>;

/// The future of a store in this process, whose outcome is there without awaiting.
///
/// The futures of [`Memory`](crate::Memory), of a [`Share`](crate::store::Share) and of a
/// [`Fallback`](crate::store::Fallback) of two such stores implement this.
pub trait AtOnce: Future<Output = Result<Outcome, StoreError>> + Unpin {
    /// The outcome.
    ///
    /// # Errors
    ///
    /// The error that the store reports.
    fn outcome(self) -> Result<Outcome, StoreError>;
}

impl AtOnce for Never {
    #[inline]
    fn outcome(self) -> Result<Outcome, StoreError> {
        self.into_inner()
    }
}

impl<F: AtOnce> Answer<F> {
    /// The outcome from a store that always answers at once.
    ///
    /// # Errors
    ///
    /// The error that the store reports.
    #[inline]
    pub fn now(self) -> Result<Outcome, StoreError> {
        match self {
            Self::Now(outcome) => outcome,
            Self::Later(future) => future.outcome(),
        }
    }
}
