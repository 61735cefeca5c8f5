//! A limit, the state of a key and a cost: the input of a decision for each limit.

use crate::definition::Limit;
use crate::earliest::Earliest;
use crate::keys::Keys;
use crate::outcome::{LimitOutcome, Role};
use crate::state::{Receipt, State};

/// A limit, the state of one key, and the cost to spend there.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The state of the key.
    pub state: &'a mut State,
    /// The cost to spend.
    pub cost: u64,
}

/// What the limits that decide do with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Admit,
    Refuse,
}

impl Attempt<'_> {
    /// Prepares the state as a decision would, and returns the previous state. A log is left as it is, because it may
    /// be long, and its arithmetic ignores expired stamps and handles a clock that stepped back.
    pub(super) fn look(&mut self, now: u64) -> State {
        let log = self.state.log.take();
        let before = self.state.clone();
        self.limit.tidy(self.state, now);
        self.state.log = log;
        before
    }

    /// The earliest moment, `from` or more from `now`, at which the limit lets the request in.
    #[inline]
    pub(super) fn earliest(&self, now: u64, from: u64) -> Earliest {
        self.limit.earliest(self.state, now, self.cost, from)
    }

    pub(super) fn never_admits(&self, patience: Option<u64>) -> bool {
        self.limit.never_admits(self.cost, patience)
    }

    /// How long the request would wait in the limit's own queue, if it has one.
    #[inline]
    pub(super) fn queued(&self, now: u64) -> Option<u64> {
        self.limit.queued(self.state, now, self.cost)
    }

    /// The outcome of a shadow for a request that the other limits have decided. It charges the shadow if it `takes`.
    pub(super) fn in_shadow(&mut self, now: u64, others: Others, takes: bool) -> LimitOutcome {
        let is_at_once = matches!(self.earliest(now, 0), Earliest::At(0));
        if !is_at_once || self.queued(now).is_some_and(|queued| queued > 0) {
            if takes {
                self.limit.refuse(self.state, now, self.cost);
            }
            return self.limit_outcome(
                now,
                Receipt { void: true, ..Receipt::default() },
                Role::Shadowed,
            );
        }
        match (others, takes) {
            (Others::Refuse, _) => {
                self.limit_outcome(now, Receipt::default(), Role::Refused(false))
            }
            (Others::Admit, false) => self.limit_outcome(now, Receipt::default(), Role::Asked),
            (Others::Admit, true) => {
                let receipt = self.limit.spend(self.state, now, self.cost, 0);
                self.limit_outcome(now, receipt, Role::Charged)
            }
        }
    }

    /// The status of the limit after the decision.
    pub(super) fn limit_outcome(&self, now: u64, receipt: Receipt, role: Role) -> LimitOutcome {
        if !self.limit.has_extra_state() {
            return LimitOutcome::of_words(self.state.words, now, role);
        }
        let mut status = self.limit.status(self.state, now, receipt);
        if role.is_refused() {
            status.retry = self.limit.retry(self.state, now, self.cost);
        }
        status.charged = if role == Role::Charged { self.cost } else { 0 };
        status.refused = role == Role::Refused(true);
        status.shadowed = role == Role::Shadowed;
        LimitOutcome::computed(status)
    }

    pub(super) fn books(&self, now: u64, wait: u64, keys: Keys) -> bool {
        self.limit.books(self.state, now, self.cost, wait, keys)
    }
}

/// The limits that decide, without shadows.
pub(super) fn deciding<'s, 'a>(
    attempts: &'s [Attempt<'a>],
) -> impl Iterator<Item = &'s Attempt<'a>> {
    attempts.iter().filter(|attempt| !attempt.limit.is_shadow())
}
