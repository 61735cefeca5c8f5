use alloc::vec;
use core::time::Duration;

use crate::limit::Limit;
use crate::outcome::{LimitOutcome, Outcome};
use crate::part::Part;

/// Where a store has counted what was owed to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedIn {
    /// In the key's own row.
    OwnRow,
    /// In a row that several keys share.
    SharedRow,
    /// Nowhere: there was no room.
    Nowhere,
}

/// What a store, or what asks one, needs of an outcome.
pub trait OutcomeInternals: Sized {
    /// Whether the request may go ahead now, and there is nothing to report of it.
    fn is_at_once(&self) -> bool;

    /// Whether there is something to report of an admitted request: it is [shadowed](Outcome::is_shadowed) or
    /// [uncounted](Outcome::is_uncounted).
    fn has_notes(&self) -> bool;

    /// Whether it is of one limit whose state is two words, from which everything follows.
    fn is_of_words(&self) -> bool;

    /// Whether a limit was decided by other numbers than those that it was charged with.
    fn is_by_other_numbers(&self) -> bool;

    /// Whether the limit at this index of the charge is a shadow that would not have admitted the request.
    fn shadows(&self, at: usize) -> bool;

    /// Whether the limit at this index was not counted.
    fn leaves_out(&self, at: usize) -> bool;

    /// What is left of the limit at this index of the charge, until when, and whether that is soft.
    fn left_of(&self, at: usize, limit: &Limit) -> (u64, Option<Duration>, bool);

    /// What remains of the limit at this index of the charge.
    fn remaining_of(&self, at: usize, limit: &Limit) -> u64;

    /// Remembers that it was decided by a part of the limit, whose words are in this outcome.
    #[must_use]
    fn by_part(self, part: Part) -> Self;

    /// Remembers which store of two has decided.
    #[must_use]
    fn passed_on(self, store: u8) -> Self;

    /// The outcome for all limits of a charge, of one that was decided without some of them: `each` says of
    /// every limit, in order, what it is and costs, and how it was counted.
    #[must_use]
    fn filled_in<'l>(self, each: impl Iterator<Item = (&'l Limit, u64, CountedIn)>) -> Self;
}

impl OutcomeInternals for Outcome {
    #[inline]
    fn is_at_once(&self) -> bool {
        self.is_admitted() && self.notes == 0 && self.one.micros == 0
    }

    #[inline]
    fn has_notes(&self) -> bool {
        self.notes != 0
    }

    #[inline]
    fn is_of_words(&self) -> bool {
        self.any.is_none()
    }

    #[inline]
    fn is_by_other_numbers(&self) -> bool {
        self.any.as_deref().is_some_and(|limits| limits.iter().any(LimitOutcome::is_by_other))
    }

    fn shadows(&self, at: usize) -> bool {
        match &self.any {
            None => self.is_shadowed(),
            Some(limits) => limits.get(at).is_some_and(LimitOutcome::is_shadowed),
        }
    }

    fn leaves_out(&self, at: usize) -> bool {
        let limits = self.any.as_deref();
        limits.is_some_and(|limits| limits.get(at).is_some_and(LimitOutcome::is_uncounted))
    }

    #[inline]
    fn left_of(&self, at: usize, limit: &Limit) -> (u64, Option<Duration>, bool) {
        match &self.any {
            None => self.one.left(limit),
            Some(limits) => match limits.get(at) {
                Some(outcome) => outcome.left(limit),
                None => (limit.capacity(), Some(Duration::ZERO), false),
            },
        }
    }

    fn remaining_of(&self, at: usize, limit: &Limit) -> u64 {
        match &self.any {
            None => self.one.remaining(limit),
            Some(_) => self.left_of(at, limit).0,
        }
    }

    fn by_part(mut self, part: Part) -> Self {
        self.one.part = part.to_bits();
        self
    }

    fn passed_on(mut self, store: u8) -> Self {
        self.one.via = self.one.via << 1 | store;
        for outcome in self.any.iter_mut().flat_map(|limits| limits.iter_mut()) {
            outcome.pass(store);
        }
        self
    }

    fn filled_in<'l>(self, each: impl Iterator<Item = (&'l Limit, u64, CountedIn)>) -> Self {
        let verdict = self.verdict();
        let mut known = match self.any {
            None => vec![LimitOutcome::Words(self.one)],
            Some(limits) => *limits,
        }
        .into_iter();
        let limits = each.filter_map(|(limit, cost, counted)| match counted {
            CountedIn::OwnRow => known.next(),
            CountedIn::SharedRow => known.next().map(|outcome| outcome.together(limit, cost)),
            CountedIn::Nowhere => Some(LimitOutcome::uncounted(*limit)),
        });
        Self::new(verdict, limits.collect())
    }
}
