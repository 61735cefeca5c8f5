pub(crate) mod hold;
pub(crate) mod rest;
pub(crate) mod unserved;

use std::time::Duration;

use self::hold::Hold;
use self::rest::Rest;
use self::unserved::is_unserved;
use crate::cost::account::Reply;
use crate::limit::{Decision, Outcome, Receipt, Verdict};
use crate::store::Store;
use crate::store::charge::{Charge, Debit};

/// An admitted request whose cost is not yet known.
///
/// Settle it when its cost is known: by a response ([`settle`](Self::settle)), to an amount
/// ([`settle_to`](Self::settle_to)), to nothing ([`give_back`](Self::give_back)) or to all of it
/// ([`keep`](Self::keep)). If it is dropped unsettled, because the client has gone or the service failed, the request
/// keeps its charge, and what is held (a place of [`Limit::concurrent`](crate::Limit::concurrent)) is given back. A
/// request that is still waiting gives everything back. So does one that waited in an inner layer when it was
/// [dropped](crate::adapter::listen_unserved).
#[derive(Debug)]
pub struct Ticket<S: Settle> {
    store: S,
    charge: Charge,
    outcome: Outcome,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Waiting,
    Running,
    /// What waits for the end of the body is still to be settled.
    Answered {
        is_running: bool,
        /// Whether what is charged by tokens is settled already.
        is_final: bool,
    },
    Settled,
    Refused,
}

/// Settles charges. Every [`Store`] does.
pub trait Settle {
    /// See [`Store::settle`].
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64);
}

impl<S: Store> Settle for S {
    #[inline]
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        Store::settle(self, debit, receipt, spent);
    }
}

impl<S: Settle> Ticket<S> {
    /// The ticket of a charge that `store` has admitted. If the store refused, and the request is forwarded all the
    /// same, nothing was charged and nothing is settled.
    #[inline]
    pub fn new(store: S, charge: Charge, outcome: Outcome) -> Self {
        let fate = match outcome.verdict() {
            Verdict::Admit { wait: Duration::ZERO } => Fate::Running,
            Verdict::Admit { .. } => Fate::Waiting,
            Verdict::Refuse { .. } | Verdict::Never => Fate::Refused,
        };
        Self { store, charge, outcome, fate }
    }

    /// The ticket of a request that goes ahead at once. A shadow makes no request wait, even if its limit has a
    /// queue.
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

    /// The verdict and the status of each limit.
    pub fn decision(&self) -> Decision {
        self.outcome.decision(&self.charge)
    }

    /// The same ticket, settled by what `store` makes of the present store.
    pub(crate) fn on<T: Settle>(mut self, store: impl FnOnce(&S) -> T) -> Ticket<T> {
        let fate = std::mem::replace(&mut self.fate, Fate::Settled);
        let charge = std::mem::take(&mut self.charge);
        let outcome = std::mem::replace(&mut self.outcome, Outcome::free());
        Ticket { store: store(&self.store), charge, outcome, fate }
    }

    /// The wait is over: from now on the request counts, whatever becomes of it.
    pub fn begin(&mut self) {
        if self.fate == Fate::Waiting {
            self.fate = Fate::Running;
        }
    }

    /// Settles with the response: keeps what it cost, gives the rest back, charges what is missing.
    pub fn settle(mut self, reply: &dyn Reply) {
        self.end(|debit| debit.spent(reply));
    }

    /// Whether settling it may have to wait for the end of the response's body.
    pub(crate) fn may_wait(&self) -> bool {
        self.fate != Fate::Refused && self.charge.debits().any(Debit::may_wait)
    }

    /// Whether nothing of it is settled yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.fate, Fate::Waiting | Fate::Running)
    }

    /// Settles with the head of a response what does not wait for the end of its body.
    pub(crate) fn close(&mut self, reply: &dyn Reply, hold: Hold) {
        let is_running = reply.is_running();
        let waits = |debit: &Debit| hold == Hold::End && debit.waits(is_running);
        if self.fate == Fate::Refused || reply.is_refusal() || !self.charge.debits().any(waits) {
            return self.end(|debit| debit.spent(reply));
        }
        self.fate = Fate::Answered { is_running, is_final: false };
        self.each(|debit| if waits(debit) { debit.cost } else { debit.spent(reply) });
    }

    /// What waits for the end of the body.
    pub(crate) fn rest(&self) -> Rest {
        match self.fate {
            Fate::Answered { is_running, .. } => {
                Rest::of(self.charge.debits().any(|debit| debit.account_waits(is_running)))
            }
            _ => Rest::Nothing,
        }
    }

    /// Settles what has waited for the end of the body.
    pub(crate) fn finish(&mut self, reply: Option<&dyn Reply>) {
        if let Fate::Answered { is_running, is_final } = self.fate {
            self.end(|debit| {
                let is_open = debit.waits(is_running) && !(is_final && debit.is_by_usage());
                if is_open { debit.spent_at_end(reply) } else { debit.cost }
            });
        }
    }

    /// Settles what is charged by tokens, now that their usage is final. The rest waits for the end of the body.
    pub(crate) fn finish_usage(&mut self, reply: &dyn Reply) {
        if let Fate::Answered { is_running, is_final: false } = self.fate {
            self.fate = Fate::Answered { is_running, is_final: true };
            let is_due = |debit: &Debit| debit.is_by_usage() && debit.waits(is_running);
            self.each(|debit| if is_due(debit) { debit.spent(reply) } else { debit.cost });
        }
    }

    /// Whether a charge is settled by the usage of tokens, where one is reported.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.fate != Fate::Refused && self.charge.debits().any(Debit::counts_tokens)
    }

    /// Changes the charge to `spent` of each limit: gives back the excess, or charges the difference, beyond the
    /// limit if necessary. What is held is given back.
    ///
    /// A charge is given back as far as it has not been recovered since: see
    /// [`Limit::settle`](crate::Limit::settle).
    pub fn settle_to(mut self, spent: u64) {
        self.end(|debit| if debit.limit.is_held() { 0 } else { spent });
    }

    /// Keeps the charge as it is, even if the request still waits for its turn. What is held is given back. Dropping
    /// the ticket of a request that has had its turn does the same.
    pub fn keep(mut self) {
        self.end(|debit| if debit.limit.is_held() { 0 } else { debit.cost });
    }

    /// Gives everything back, as if the request had never come.
    pub fn give_back(mut self) {
        self.end(|_| 0);
    }

    fn end(&mut self, spent: impl Fn(&Debit) -> u64) {
        if self.fate != Fate::Refused {
            self.fate = Fate::Settled;
            self.each(spent);
        }
    }

    fn each(&self, spent: impl Fn(&Debit) -> u64) {
        for (debit, receipt) in self.charge.debits().zip(self.outcome.receipts()) {
            let spent = spent(debit);
            if spent != debit.cost && !receipt.is_void() {
                self.store.settle(debit, &receipt, spent);
            }
        }
    }
}

impl<S: Settle> Drop for Ticket<S> {
    fn drop(&mut self) {
        match self.fate {
            Fate::Settled | Fate::Refused => {}
            Fate::Waiting => self.each(|_| 0),
            Fate::Running if is_unserved() => self.each(|_| 0),
            Fate::Running | Fate::Answered { .. } => {
                self.each(|debit| if debit.limit.is_held() { 0 } else { debit.cost });
            }
        }
    }
}

#[cfg(test)]
mod tests;
