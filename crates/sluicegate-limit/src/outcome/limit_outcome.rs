//! The status of one limit after the decision.

use alloc::boxed::Box;
use core::time::Duration;

use crate::definition::Limit;
use crate::state::Receipt;
use crate::status::LimitStatus;
use crate::words::Words;

/// The part that a limit had in a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It admitted, and was charged.
    Charged,
    /// It would admit.
    #[default]
    Asked,
    /// The request was refused, by this limit or by others.
    Refused(bool),
    /// It is a shadow, and would have refused or delayed the request.
    Shadowed,
}

impl Role {
    /// Whether the limit was not charged, because it or another limit did not admit the request.
    pub(crate) const fn is_refused(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Shadowed)
    }
}

/// The status of one limit after the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LimitOutcome {
    Deferred(DeferredStatus),
    Computed(ComputedStatus),
}

/// The two words as they are now: everything follows from them.
///
/// Plain numbers, so that each is written once, directly into the returned outcome. A processor stalls if a value is
/// written in one size and read in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeferredStatus {
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) now: u64,
    pub(crate) role: Role,
    pub(crate) via: u8,
    /// Whether the words are those of the only account in the row of a limit that is carried over.
    pub(crate) is_account: bool,
    /// The part of the limit that has decided, as the bits of a [`Part`]; 0 for all of it.
    pub(crate) part: u32,
}

/// Computed while the state was available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComputedStatus {
    pub(crate) remaining: u64,
    pub(crate) window: Option<Duration>,
    pub(crate) reset: Option<Duration>,
    pub(crate) retry: Option<Duration>,
    pub(crate) charged: u64,
    pub(crate) refused: bool,
    pub(crate) shadowed: bool,
    pub(crate) uncounted: bool,
    pub(crate) together: bool,
    pub(crate) soft: bool,
    pub(crate) banned: bool,
    /// Decided by this limit instead of the one that was charged.
    pub(crate) instead: Option<Box<Limit>>,
    pub(crate) receipt: Receipt,
}

impl LimitOutcome {
    /// Of a limit whose state is two words.
    pub(crate) fn of_words([first, second]: Words, now: u64, role: Role) -> Self {
        let (via, is_account, part) = (0, false, 0);
        Self::Deferred(DeferredStatus { first, second, now, role, via, is_account, part })
    }

    pub(crate) fn words(&self) -> Option<Words> {
        match self {
            Self::Deferred(deferred) => Some([deferred.first, deferred.second]),
            Self::Computed(_) => None,
        }
    }

    /// Of a limit that remembers more.
    pub(crate) fn computed(status: LimitStatus) -> Self {
        Self::Computed(ComputedStatus::of(status))
    }

    /// Of a limit that was decided by other numbers than those it was charged with.
    pub(crate) fn of_other_numbers(status: LimitStatus) -> Self {
        let instead = Some(Box::new(status.limit));
        Self::Computed(ComputedStatus { instead, ..ComputedStatus::of(status) })
    }

    /// Whether it was decided by another limit, or other numbers, than the one that was charged.
    pub(crate) fn is_by_other(&self) -> bool {
        matches!(self, Self::Computed(ComputedStatus { instead: Some(_), .. }))
    }

    pub(crate) fn is_shadowed(&self) -> bool {
        match self {
            Self::Deferred(deferred) => deferred.role == Role::Shadowed,
            Self::Computed(computed) => computed.shadowed,
        }
    }

    pub(crate) fn is_uncounted(&self) -> bool {
        matches!(self, Self::Computed(ComputedStatus { uncounted: true, .. }))
    }

    /// Of a limit that had no part in the decision.
    pub(crate) fn uncounted(limit: Limit) -> Self {
        let receipt = Receipt { void: true, ..Receipt::default() };
        Self::computed(LimitStatus { uncounted: true, receipt, ..LimitStatus::fresh(limit) })
    }

    /// This outcome, of a charge to a row that several keys share.
    pub(crate) fn together(self, limit: &Limit, cost: u64) -> Self {
        let mut status = self.status(limit, cost);
        status.together = true;
        status.receipt.together = true;
        Self::computed(status)
    }

    pub(crate) fn receipt(&self) -> Receipt {
        match self {
            Self::Deferred(deferred) => deferred.receipt(),
            Self::Computed(computed) => computed.receipt,
        }
    }

    pub(crate) fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        match self {
            Self::Deferred(deferred) => deferred.status(limit, cost),
            Self::Computed(computed) => LimitStatus {
                limit: computed.instead.as_deref().map_or(*limit, |instead| *instead),
                remaining: computed.remaining,
                window: computed.window,
                reset: computed.reset,
                charged: computed.charged,
                refused: computed.refused,
                shadowed: computed.shadowed,
                uncounted: computed.uncounted,
                together: computed.together,
                retry: computed.retry,
                soft: computed.soft,
                banned: computed.banned,
                receipt: computed.receipt,
            },
        }
    }
}

impl ComputedStatus {
    pub(crate) fn of(status: LimitStatus) -> Self {
        Self {
            remaining: status.remaining,
            window: status.window,
            reset: status.reset,
            retry: status.retry,
            charged: status.charged,
            refused: status.refused,
            shadowed: status.shadowed,
            uncounted: status.uncounted,
            together: status.together,
            soft: status.soft,
            banned: status.banned,
            instead: None,
            receipt: status.receipt,
        }
    }
}

impl DeferredStatus {
    /// The words are what was written. If nothing was charged, nothing can be given back.
    pub(crate) fn receipt(&self) -> Receipt {
        let words = if self.role == Role::Charged { [self.first, self.second] } else { [0; 2] };
        let void = self.role == Role::Shadowed;
        let receipt =
            Receipt { via: self.via, void, part: self.part, ..Receipt::from_words(words) };
        match self.is_account && self.role == Role::Charged {
            // The account was there before, and no other had to have room for the charge.
            true => Receipt { at: self.now, since: self.now, by_all: true, ..receipt },
            false => receipt,
        }
    }

    /// What remains, until when, and whether that is beyond the soft limit.
    pub(crate) fn left(&self, limit: &Limit) -> (u64, Option<Duration>, bool) {
        limit.portion(self.part).left([self.first, self.second], self.now)
    }

    pub(crate) fn remaining(&self, limit: &Limit) -> u64 {
        limit.portion(self.part).remaining_of([self.first, self.second], self.now)
    }

    pub(crate) fn status(&self, limit: &Limit, cost: u64) -> LimitStatus {
        let words = [self.first, self.second];
        let portion = limit.portion(self.part);
        let mut status = portion.status_of_words(words, self.now);
        status.limit = *limit;
        if self.role.is_refused() {
            status.retry = portion.retry_of_words(words, self.now, cost);
        }
        status.receipt = self.receipt();
        status.charged = if self.role == Role::Charged { cost } else { 0 };
        status.refused = self.role == Role::Refused(true);
        status.shadowed = self.role == Role::Shadowed;
        status
    }
}
