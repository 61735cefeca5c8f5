use super::limit_outcome::{DeferredStatus, Role};
use super::micros::{NEVER, UNKNOWN};
use crate::limit::earliest::{Earliest, StepResult};
use crate::limit::words::Words;

/// The outcome for one [plain](super::Plain) limit, in plain numbers that stay in registers.
#[derive(Clone, Copy)]
pub(crate) struct PlainOutcome {
    pub(super) status: DeferredStatus,
    pub(super) micros: u64,
}

impl PlainOutcome {
    /// What came of a step at `now`, from words as they were `before`.
    #[inline]
    pub(crate) fn new(result: StepResult, before: Words, now: u64) -> Self {
        let ([first, second], micros, role) = match result {
            StepResult::Admit { words, .. } => (words, 0, Role::Charged),
            StepResult::Refuse(Earliest::At(delay)) => (before, delay, Role::Refused(true)),
            StepResult::Refuse(Earliest::Unknown) => (before, UNKNOWN, Role::Refused(true)),
            StepResult::Refuse(Earliest::Never) => (before, NEVER, Role::Refused(true)),
        };
        Self {
            status: DeferredStatus { first, second, now, role, via: 0, is_account: false },
            micros,
        }
    }

    /// The same, of words that are the only account in the row of a limit that is carried over.
    #[inline]
    pub(crate) fn of_account(self) -> Self {
        Self { status: DeferredStatus { is_account: true, ..self.status }, ..self }
    }
}
