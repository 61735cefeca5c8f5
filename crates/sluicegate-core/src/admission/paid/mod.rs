//! What a request that is served has paid, until it has been answered.

mod one;

use std::rc::Rc;
use std::sync::Arc;

use self::one::One;
use crate::admission::enforcer::Enforcer;
use crate::cost::account::Reply;
use crate::cost::llm::settle::is_unread;
use crate::http::fields;
use crate::http::line::{Line, Text};
use crate::limit::{Decision, Outcome, Receipt};
use crate::observe::observer::Event;
use crate::store::Store;
use crate::store::charge::{Charge, Debit};
use crate::store::ticket::hold::Hold;
use crate::store::ticket::rest::Rest;
use crate::store::ticket::{self, Ticket};

/// A handle to an [`Enforcer`]: what a request under way keeps of the layer that admitted it.
pub trait AsEnforcer {
    /// The store of the enforcer.
    type Store: Store;

    /// The enforcer.
    fn as_enforcer(&self) -> &Enforcer<Self::Store>;
}

impl<S: Store> AsEnforcer for Enforcer<S> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Self {
        self
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<E: AsEnforcer + ?Sized> AsEnforcer for $pointer<E> {
            type Store = E::Store;

            #[inline]
            fn as_enforcer(&self) -> &Enforcer<E::Store> {
                (**self).as_enforcer()
            }
        }
    )*};
}

pointers!(Arc, Rc);

/// Settles through the store of an enforcer: one pointer for each request, not two.
#[derive(Debug, Clone)]
pub struct Via<E>(pub(crate) E);

impl<E: AsEnforcer> ticket::Settle for Via<E> {
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        Store::settle(&self.0.as_enforcer().store, debit, receipt, spent);
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
    /// What it has paid of the charge. It is settled through `enforcer`.
    #[inline]
    pub fn paid<E: AsEnforcer>(self, charge: &mut Charge, enforcer: impl FnOnce() -> E) -> Paid<E> {
        Paid(match self {
            Self::Charged(mut outcome) => {
                return Paid::charged(enforcer(), charge, &mut outcome);
            }
            Self::Degraded(decision) => Payment::Degraded(enforcer(), decision),
            Self::Shadowed(decision) => Payment::Shadowed(decision),
            Self::Unknown => Payment::Unknown,
        })
    }
}

/// What a request that is served has paid; to be [closed](Self::close) when it has been answered, and
/// [ended](Self::end) with the response's body if there is a [rest](Self::rest).
///
/// Small, because it moves along with the response's future, and that is boxed more often than not.
#[derive(Debug)]
pub struct Paid<E: AsEnforcer>(Payment<E>);

#[derive(Debug)]
enum Payment<E: AsEnforcer> {
    /// A charge to one known limit, as most are.
    One(One<E>),
    Several(Box<Ticket<Via<E>>>),
    Degraded(E, Box<Decision>),
    Shadowed(Box<Decision>),
    Unknown,
}

impl<E: AsEnforcer> Payment<E> {
    #[inline(never)]
    fn several(enforcer: E, charge: &mut Charge, outcome: &mut Outcome) -> Self {
        let charge = std::mem::take(charge);
        Self::Several(Box::new(Ticket::begun(Via(enforcer), charge, outcome.taken())))
    }
}

impl<E: AsEnforcer> Paid<E> {
    /// The charge of a request that goes ahead, to be settled. Takes what has to be kept of it and of the outcome.
    #[inline(always)]
    pub fn charged(enforcer: E, charge: &mut Charge, outcome: &mut Outcome) -> Self {
        Self(match One::new(enforcer, charge, outcome) {
            Ok(one) => Payment::One(one),
            Err(enforcer) => Payment::several(enforcer, charge, outcome),
        })
    }

    /// Nothing was charged.
    pub fn nothing() -> Self {
        Self(Payment::Unknown)
    }

    /// The handle to the enforcer, where there is something to tell the client.
    #[inline]
    pub fn enforcer(&self) -> Option<&E> {
        match &self.0 {
            Payment::One(one) => Some(one.enforcer()),
            Payment::Several(ticket) => Some(&ticket.store().0),
            Payment::Degraded(enforcer, _) => Some(enforcer),
            Payment::Shadowed(_) | Payment::Unknown => None,
        }
    }

    /// Hands the decision out, if there is one, for handlers to see. It is large, so it is made right where it is used.
    #[inline(always)]
    pub(crate) fn leave_decision(&self, leave: impl FnOnce(Decision)) {
        match &self.0 {
            Payment::One(one) => leave(one.decision()),
            _ => {
                if let Some(decision) = self.decision() {
                    leave(decision);
                }
            }
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

    /// Hands out the index of the known limit that was charged, and the value of the `RateLimit` field about it.
    /// Returns `false` where it is not one known limit, or its numbers have changed.
    pub(crate) fn tell(&self, tell: impl FnOnce(usize, &[u8])) -> bool {
        let Payment::One(one) = &self.0 else { return false };
        if one.limit().is_shadow() || one.is_by_other_numbers() {
            return false;
        }
        let (remaining, window, soft) = one.left();
        let mut line = Line::new();
        line.text(one.known().name());
        fields::rate_limit_item(&mut line, remaining, window, soft);
        tell(one.at(), line.as_bytes());
        true
    }

    /// Whether the request exceeds a limit and is served all the same.
    #[inline]
    pub(crate) fn exceeds(&self) -> bool {
        matches!(self.0, Payment::Degraded(..) | Payment::Shadowed(_))
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
            Payment::Several(ticket) => {
                ticket.may_wait() && ticket.store().0.as_enforcer().hold == Hold::End
            }
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => false,
        }
    }

    /// Whether it is not settled yet, by whatever response.
    #[inline]
    pub fn is_open(&self) -> bool {
        match &self.0 {
            Payment::One(one) => one.is_open(),
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
        if let Some(reply) = reply {
            self.note_unread(reply);
        }
        match &mut self.0 {
            Payment::One(one) => one.end(reply),
            Payment::Several(ticket) => ticket.finish(reply),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => {}
        }
    }

    /// Settles what is charged by tokens, now that their usage is final. The rest waits for [`end`](Self::end).
    pub(crate) fn end_usage(&mut self, reply: &dyn Reply) {
        match &mut self.0 {
            Payment::One(one) => one.end_usage(reply),
            Payment::Several(ticket) => ticket.finish_usage(reply),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => {}
        }
    }

    /// Tells the observer if tokens were charged for a response whose usage was not read.
    fn note_unread(&self, reply: &dyn Reply) {
        let counts_tokens = match &self.0 {
            Payment::One(one) => one.counts_tokens(),
            Payment::Several(ticket) => ticket.counts_tokens(),
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => false,
        };
        if let (true, Some(enforcer)) = (counts_tokens && is_unread(reply), self.enforcer()) {
            let enforcer = enforcer.as_enforcer();
            enforcer.observer.saw(&enforcer.clock, Event::Unread);
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
                let hold = ticket.store().0.as_enforcer().hold;
                ticket.close(reply, hold);
            }
            Payment::Degraded(..) => {}
            Payment::Shadowed(_) | Payment::Unknown => return false,
        }
        if !is_refusal && self.may_wait() && self.rest() == Rest::Nothing {
            self.note_unread(reply);
        }
        !is_refusal
    }
}

impl<E: AsEnforcer> Paid<E> {
    /// The ticket of a charge, settled by `store` from now on; `None` where there is none.
    pub fn into_ticket<S: Store>(self, store: impl FnOnce(&E) -> S) -> Option<Ticket<S>> {
        match self.0 {
            Payment::Several(ticket) => Some(ticket.on(|via| store(&via.0))),
            Payment::One(one) => {
                let store = store(one.enforcer());
                Some(one.into_ticket(store))
            }
            Payment::Degraded(..) | Payment::Shadowed(_) | Payment::Unknown => None,
        }
    }
}

impl<E: AsEnforcer> From<Ticket<Via<E>>> for Paid<E> {
    fn from(ticket: Ticket<Via<E>>) -> Self {
        Self(Payment::Several(Box::new(ticket)))
    }
}
