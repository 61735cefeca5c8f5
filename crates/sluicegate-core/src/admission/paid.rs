//! What a request that is served has paid, until it has been answered.

use std::fmt::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use crate::admission::hold::Hold;
use crate::admission::known::Known;
use crate::admission::unserved::is_unserved;
use crate::cost::account::{Account, Reply};
use crate::http::fields;
use crate::http::line::Line;
use crate::key::KeyBuf;
use crate::limit::{Decision, Limit, Outcome};
use crate::store::Store;
use crate::store::charge::{Charge, Debit};
use crate::store::ticket::Ticket;

/// Where requests are settled: a store, and the limits that are known before any request is.
pub trait Desk: Store {
    /// The limits.
    fn known(&self) -> &[Known];

    /// Until when a served request holds its places.
    fn hold(&self) -> Hold {
        Hold::End
    }
}

impl<D: Desk + ?Sized> Desk for Arc<D> {
    fn known(&self) -> &[Known] {
        (**self).known()
    }

    fn hold(&self) -> Hold {
        (**self).hold()
    }
}

impl<D: Desk + ?Sized> Desk for Rc<D> {
    fn known(&self) -> &[Known] {
        (**self).known()
    }

    fn hold(&self) -> Hold {
        (**self).hold()
    }
}

/// How a request is served, to be [paid](Self::paid) for.
#[derive(Debug)]
pub enum Served {
    /// It was admitted.
    Charged(Outcome),
    /// It was refused, and is served less: nothing was charged.
    Degraded(Box<Decision>),
    /// It would have been refused, were the limit more than a shadow: nothing was charged.
    Shadowed(Box<Decision>),
    /// Nobody could tell: nothing was charged.
    Unknown,
}

impl Served {
    /// What it has paid of the charge; `desk` is where that is settled.
    #[inline]
    pub fn paid<D: Desk>(self, charge: &mut Charge, desk: impl FnOnce() -> D) -> Paid<D> {
        Paid(match self {
            Self::Charged(outcome) => return Paid::charged(desk(), charge, &outcome),
            Self::Degraded(decision) => Payment::Degraded(desk(), decision),
            Self::Shadowed(decision) => Payment::Shadowed(decision),
            Self::Unknown => Payment::Unknown,
        })
    }
}

/// What waits for the end of a response's body, once its head has been [settled](Paid::close).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing does.
    Nothing,
    /// A place is held.
    Place,
    /// A charge is settled then, perhaps beside a place: by what the response says.
    Account,
}

impl Rest {
    pub(crate) const fn of(account_waits: bool) -> Self {
        if account_waits { Self::Account } else { Self::Place }
    }
}

/// What a request that is served has paid; to be [closed](Self::close) when it has been answered, and
/// [ended](Self::end) with the response's body if there is a [rest](Self::rest).
///
/// Small, because it moves along with the response's future, and that is boxed more often than not.
#[derive(Debug)]
pub struct Paid<D: Desk>(Payment<D>);

#[derive(Debug)]
enum Payment<D: Desk> {
    /// A charge to one limit that is known at the desk: most are.
    One(One<D>),
    Several(Box<Ticket<D>>),
    Degraded(D, Box<Decision>),
    Shadowed(Box<Decision>),
    Unknown,
}

impl<D: Desk> Paid<D> {
    /// The charge of a request that goes ahead, to be settled. Takes it where it has to be kept as it
    /// is.
    #[inline(always)]
    pub fn charged(desk: D, charge: &mut Charge, outcome: &Outcome) -> Self {
        if let Some(debit) = charge.only() {
            if let Some(at) = position(&desk, &debit.limit) {
                return Self(Payment::One(One::new(desk, at, debit, outcome.clone())));
            }
        }
        let charge = std::mem::take(charge);
        Self(Payment::Several(Box::new(Ticket::begun(desk, charge, outcome.clone()))))
    }

    /// Nothing was owed.
    pub fn unknown() -> Self {
        Self(Payment::Unknown)
    }

    /// Where it is settled, where there is something to tell the client.
    #[inline]
    pub fn desk(&self) -> Option<&D> {
        match &self.0 {
            Payment::One(one) => Some(&one.desk),
            Payment::Several(ticket) => Some(ticket.store()),
            Payment::Degraded(desk, _) => Some(desk),
            Payment::Shadowed(_) | Payment::Unknown => None,
        }
    }

    /// The decision, for handlers to see.
    pub fn decision(&self) -> Option<Decision> {
        match &self.0 {
            Payment::One(one) => Some(one.decision()),
            Payment::Several(ticket) => Some(ticket.decision()),
            Payment::Degraded(_, decision) | Payment::Shadowed(decision) => {
                Some((**decision).clone())
            }
            Payment::Unknown => None,
        }
    }

    /// Hands out the value of the `RateLimit` field, and where the limit stands that it is about at the
    /// desk, if it is about one of those: what is always the same is written already.
    pub fn tell(&self, tell: impl FnOnce(usize, &str)) -> bool {
        let Payment::One(one) = &self.0 else { return false };
        if one.limit().is_shadow() {
            return false;
        }
        let known = &one.desk.known()[one.at];
        let (remaining, window, soft) = one.outcome.left(one.limit());
        let mut line = Line::new();
        let named = line.write_str(known.name());
        named
            .and_then(|()| fields::rate_limit_item(&mut line, remaining, window, soft))
            .expect("a line takes everything");
        tell(one.at, line.as_str());
        true
    }

    /// Whether the handler is to serve less.
    #[inline]
    pub fn is_degraded(&self) -> bool {
        matches!(self.0, Payment::Degraded(..))
    }

    /// Whether a response may leave a [rest](Self::rest) that waits for the end of its body.
    #[inline]
    pub fn may_wait(&self) -> bool {
        match &self.0 {
            Payment::One(one) => one.may_wait(),
            Payment::Several(ticket) => ticket.may_wait() && ticket.store().hold() == Hold::End,
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => false,
        }
    }

    /// Whether it is not settled yet, by whatever response.
    #[inline]
    pub fn is_open(&self) -> bool {
        match &self.0 {
            Payment::One(one) => one.stage == Stage::Open,
            Payment::Several(ticket) => ticket.is_open(),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => false,
        }
    }

    /// What waits for the end of the body.
    #[inline]
    pub fn rest(&self) -> Rest {
        match &self.0 {
            Payment::One(one) => one.rest(),
            Payment::Several(ticket) => ticket.rest(),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => Rest::Nothing,
        }
    }

    /// Settles the [rest](Self::rest): the body has ended, or will not be sent any more. What waits for
    /// that by its account needs the `reply`, without which its charge stands.
    ///
    /// What is dropped without this gives back what is held.
    pub fn end(&mut self, reply: Option<&dyn Reply>) {
        match &mut self.0 {
            Payment::One(one) => one.end(reply),
            Payment::Several(ticket) => ticket.finish(reply),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => {}
        }
    }

    /// Settles with the head of the response all that does not wait for the end of its body, and says
    /// whether there is anything to tell the client of it: nothing where a limit further in refused, since
    /// what was charged here is then given back.
    #[inline]
    pub fn close(&mut self, reply: &dyn Reply) -> bool {
        let is_refusal = reply.is_refusal();
        match &mut self.0 {
            Payment::One(one) => one.close(reply, is_refusal),
            Payment::Several(ticket) => {
                let hold = ticket.store().hold();
                ticket.close(reply, hold);
            }
            Payment::Degraded(..) => {}
            Payment::Shadowed(_) | Payment::Unknown => return false,
        }
        !is_refusal
    }
}

impl<D: Desk> From<Ticket<D>> for Paid<D> {
    fn from(ticket: Ticket<D>) -> Self {
        Self(Payment::Several(Box::new(ticket)))
    }
}

/// A [`Ticket`] of one limit that is known at the desk, under half the size.
struct One<D: Desk> {
    desk: D,
    /// Where the limit stands.
    at: usize,
    key: KeyBuf,
    cost: u64,
    account: Option<Account>,
    outcome: Outcome,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// It waits for the end of the body: for what the response says then, or only to give a place back.
    Answered(Rest),
    Settled,
}

#[inline]
fn position(desk: &impl Desk, limit: &Limit) -> Option<usize> {
    desk.known().iter().position(|known| known.limit().is_same(limit))
}

impl<D: Desk> One<D> {
    #[inline(always)]
    fn new(desk: D, at: usize, debit: &Debit, outcome: Outcome) -> Self {
        let Debit { key, cost, ref account, .. } = *debit;
        Self { desk, at, key, cost, account: account.clone(), outcome, stage: Stage::Open }
    }

    #[inline]
    fn limit(&self) -> &Limit {
        self.desk.known()[self.at].limit()
    }

    fn decision(&self) -> Decision {
        self.outcome.about(std::iter::once((self.limit(), self.cost)))
    }

    #[inline]
    fn may_wait(&self) -> bool {
        let waits = self.account.as_ref().is_some_and(Account::may_wait) || self.limit().is_held();
        waits && self.desk.hold() == Hold::End
    }

    #[inline]
    fn rest(&self) -> Rest {
        match self.stage {
            Stage::Answered(rest) => rest,
            Stage::Open | Stage::Settled => Rest::Nothing,
        }
    }

    #[inline]
    fn close(&mut self, reply: &dyn Reply, is_refusal: bool) {
        self.stage = Stage::Settled;
        // Nearly always what was charged stands.
        if is_refusal || self.account.is_some() || self.limit().is_held() {
            self.close_by(reply, is_refusal);
        }
    }

    fn close_by(&mut self, reply: &dyn Reply, is_refusal: bool) {
        let debit = self.debit();
        let is_running = reply.is_running();
        if !is_refusal && self.desk.hold() == Hold::End && debit.waits(is_running) {
            self.stage = Stage::Answered(Rest::of(debit.account_waits(is_running)));
        } else {
            self.settle(&debit, debit.spent(reply));
        }
    }

    fn end(&mut self, reply: Option<&dyn Reply>) {
        if let Stage::Answered(_) = self.stage {
            self.stage = Stage::Settled;
            let debit = self.debit();
            self.settle(&debit, debit.spent_at_end(reply));
        }
    }

    fn debit(&self) -> Debit {
        let Self { key, cost, ref account, .. } = *self;
        Debit { limit: *self.limit(), key, cost, account: account.clone(), is_length: false }
    }

    fn settle(&self, debit: &Debit, spent: u64) {
        let receipt = self.outcome.receipts().next().filter(|receipt| !receipt.is_void());
        if let (Some(receipt), true) = (receipt, spent != debit.cost) {
            self.desk.settle(debit, &receipt, spent);
        }
    }
}

impl<D: Desk> Drop for One<D> {
    #[inline]
    fn drop(&mut self) {
        let gives_back = match self.stage {
            Stage::Settled => false,
            Stage::Answered(_) => self.limit().is_held(),
            Stage::Open => self.limit().is_held() || is_unserved(),
        };
        if gives_back {
            self.settle(&self.debit(), 0);
        }
    }
}

impl<D: Desk> fmt::Debug for One<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("One").field("limit", self.limit()).finish_non_exhaustive()
    }
}
