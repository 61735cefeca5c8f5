use super::limit_outcome::{DeferredStatus, Role};
use super::micros::{NEVER, UNKNOWN};
use crate::earliest::{Earliest, StepResult};
use crate::part::Part;
use crate::words::Words;

/// The outcome for one plain limit, in plain numbers that stay in registers.
#[derive(Debug, Clone, Copy)]
pub struct PlainOutcome {
    pub(super) status: DeferredStatus,
    pub(super) micros: u64,
}

impl PlainOutcome {
    /// Whether it was charged.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.status.role == Role::Charged
    }

    /// Whether the cost is more than the limit ever admits.
    #[inline]
    pub const fn never_fits(&self) -> bool {
        self.micros == NEVER
    }

    /// Remembers that it was decided by a part of the limit.
    #[inline]
    pub const fn by_part(mut self, part: Part) -> Self {
        self.status.part = part.to_bits();
        self
    }

    /// When it was decided.
    #[inline]
    pub const fn decided_at(&self) -> u64 {
        self.status.now
    }

    /// What came of a step at `now`, from words as they were `before`.
    #[inline]
    pub fn new(result: StepResult, before: Words, now: u64) -> Self {
        let ([first, second], micros, role) = match result {
            StepResult::Admit { words, .. } => (words, 0, Role::Charged),
            StepResult::Refuse(Earliest::At(delay)) => (before, delay, Role::Refused(true)),
            StepResult::Refuse(Earliest::Unknown) => (before, UNKNOWN, Role::Refused(true)),
            StepResult::Refuse(Earliest::Never) => (before, NEVER, Role::Refused(true)),
        };
        let (via, is_account, part) = (0, false, 0);
        Self { status: DeferredStatus { first, second, now, role, via, is_account, part }, micros }
    }

    /// The same, of words that are the only account in the row of a limit that is carried over.
    #[inline]
    pub(crate) fn of_account(self) -> Self {
        Self { status: DeferredStatus { is_account: true, ..self.status }, ..self }
    }
}
