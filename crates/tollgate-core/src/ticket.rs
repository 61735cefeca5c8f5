use std::time::Duration;

use crate::account::Reply;
use crate::charge::{Charge, Owed};
use crate::limit::{Decision, Outcome, Verdict};
use crate::store::Store;

/// A request that was admitted, until it is known what it cost.
///
/// Settle it when the response is there. Dropped unsettled, because the client has gone or the
/// service failed, the request keeps its charge, and what is held (a place of
/// [`Limit::concurrent`](crate::Limit::concurrent)) is given back. One that is still waiting gives
/// everything back.
#[derive(Debug)]
pub struct Ticket<S: Store> {
    store: S,
    charge: Charge,
    outcome: Outcome,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Waiting,
    Running,
    Settled,
    Refused,
}

impl<S: Store> Ticket<S> {
    /// The ticket of a charge that `store` admitted. One that it refused, for a request that is
    /// forwarded all the same, has charged nothing and settles nothing.
    #[inline]
    pub fn new(store: S, charge: Charge, outcome: Outcome) -> Self {
        let fate = match outcome.verdict() {
            Verdict::Admit { wait: Duration::ZERO } => Fate::Running,
            Verdict::Admit { .. } => Fate::Waiting,
            Verdict::Refuse { .. } | Verdict::Never => Fate::Refused,
        };
        Self { store, charge, outcome, fate }
    }

    /// The ticket of a request that goes ahead at once. Under a shadow nobody waits, not even where the
    /// limit says so.
    #[inline]
    pub(crate) fn begun(store: S, charge: Charge, outcome: Outcome) -> Self {
        Self { store, charge, outcome, fate: Fate::Running }
    }

    /// The store that decided.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// What the store answered.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// How the key stands with each limit.
    pub fn decision(&self) -> Decision {
        self.outcome.decision(&self.charge)
    }

    /// The wait is over: from now on the request counts, whatever becomes of it.
    pub fn begin(&mut self) {
        if self.fate == Fate::Waiting {
            self.fate = Fate::Running;
        }
    }

    /// Settles with the response: keeps what it cost, gives the rest back, charges what is missing.
    pub fn settle(mut self, reply: &dyn Reply) {
        self.close(reply);
    }

    pub(crate) fn close(&mut self, reply: &dyn Reply) {
        self.end(|owed| owed.spent(reply));
    }

    /// Gives everything back, as if the request had never come.
    pub fn give_back(mut self) {
        self.end(|_| 0);
    }

    fn end(&mut self, spent: impl Fn(&Owed) -> u64) {
        if self.fate != Fate::Refused {
            self.fate = Fate::Settled;
            self.each(spent);
        }
    }

    fn each(&self, spent: impl Fn(&Owed) -> u64) {
        for (owed, mark) in self.charge.owed().zip(self.outcome.marks()) {
            let spent = spent(owed);
            if spent != owed.cost && !mark.is_void() {
                self.store.settle(owed, &mark, spent);
            }
        }
    }
}

impl<S: Store> Drop for Ticket<S> {
    fn drop(&mut self) {
        match self.fate {
            Fate::Settled | Fate::Refused => {}
            Fate::Waiting => self.each(|_| 0),
            Fate::Running => self.each(|owed| if owed.limit.is_held() { 0 } else { owed.cost }),
        }
    }
}

#[cfg(test)]
mod tests;
