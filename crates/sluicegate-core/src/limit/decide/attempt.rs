//! A limit, the state of a key and a cost: what one decision is made of, for each limit.

use crate::limit::definition::Limit;
use crate::limit::earliest::Earliest;
use crate::limit::keys::Keys;
use crate::limit::outcome::{LimitOutcome, Role};
use crate::limit::state::{Receipt, State};

/// A limit, the state of one key, and what is to be spent there.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// What it remembers of the key.
    pub state: &'a mut State,
    /// How much is to be spent.
    pub cost: u64,
}

/// What the limits that decide do with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Admit,
    Refuse,
}

impl Attempt<'_> {
    /// Makes the state what a decision would find, and returns what it was: all but a log, which may be long,
    /// and whose arithmetic sees through stamps that are over and a clock that stepped back.
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

    /// What a shadow does and tells of a request that the others have decided, writing if it `takes`.
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

    /// What there is to know of the limit once the request has been decided.
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

/// Those that decide: a shadow is not there.
pub(super) fn deciding<'s, 'a>(
    attempts: &'s [Attempt<'a>],
) -> impl Iterator<Item = &'s Attempt<'a>> {
    attempts.iter().filter(|attempt| !attempt.limit.is_shadow())
}
