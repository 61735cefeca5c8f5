//! What a request that goes ahead has paid. It is the one thing that is settled: by the response, by the end of the
//! response's body, or by a drop.

mod record;

use std::sync::Arc;
use std::{fmt, mem};

pub use self::record::{BodyGuard, HeaderLines, Piece, ReplyHead, ReplyRecord, poll_guarded};
use crate::admission::enforcer::{AsEnforcer, Enforcer, Hold};
use crate::admission::known_limit::position;
use crate::admission::lazy_decision::{Extensions, LazyDecision};
use crate::admission::unserved::{is_unserved, spent};
use crate::cost::account::Reply;
use crate::http::fields;
use crate::http::line::{Line, Text};
use crate::key::ShortKey;
use crate::limit::{Decision, Limit, Outcome, OutcomeInternals as _, Receipt, Verdict};
use crate::observe::observer::Event;
use crate::store::Store;
use crate::store::charge::{Charge, CostKind, Debit};

/// What a request that goes ahead has paid, until that is settled.
///
/// An adapter [closes](Self::close) it with the head of the response, and hands its [rest](Self::take_rest) to the body
/// of the response, where there is one. Code without responses settles it to an amount ([`settle_to`](Self::settle_to)),
/// to nothing ([`give_back`](Self::give_back)) or to all of it ([`keep`](Self::keep)).
///
/// If it is dropped unsettled, because the client has gone or the service failed, the request keeps its charge, and what
/// is held (a place of [`Limit::concurrent`](crate::Limit::concurrent)) is given back. If an inner layer has counted that
/// it [has spent](crate::adapter::note_spent) more, the charge is settled by that. A request that is still waiting
/// for its turn gives its whole charge back. So does one that waited in an inner layer when it was
/// [dropped](crate::adapter::listen_unserved). A bucket beside the limit that it waited for stays booked as
/// [idle](crate::limit::Limits) until that turn. What waits for the end of a body is settled as if it had ended.
///
/// It is settled through the handle `E` to the enforcer that admitted it.
pub struct Paid<E: AsEnforcer> {
    /// `None` where nothing was charged and there is nothing to tell the client.
    enforcer: Option<E>,
    charge: Charged,
    stage: Stage,
}

/// What a [`Limiter`](https://docs.rs/sluicegate/latest/sluicegate/struct.Limiter.html) hands out for a request that it
/// has admitted, to be settled when the real cost is known.
pub type Ticket<S> = Paid<Arc<Enforcer<S>>>;

enum Charged {
    /// Nobody could tell, or the rule charges nothing.
    Nothing,
    /// A charge to one known limit on a short key, as most are, which no response settles. It is kept in place, and
    /// without the parts of a [`Debit`] that follow from the limit: it moves along with the future of the response,
    /// several times.
    One(KnownDebit),
    Other(Box<OtherDebits>),
    /// A limit is exceeded, and the request is served all the same, in full or less.
    Exceeded {
        decision: Box<Decision>,
        is_degraded: bool,
    },
}

struct OtherDebits {
    charge: Charge,
    outcome: Outcome,
    /// What rules are asked about when the body has ended, unless only places are to be given back.
    reply: Option<ReplyRecord>,
}

struct KnownDebit {
    key: ShortKey,
    cost: u64,
    outcome: Outcome,
    /// The index of the limit among those known.
    at: u32,
    /// Whether the limit is one that is held.
    is_held: bool,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The request waits for its turn.
    Waiting,
    /// It is being served.
    Open,
    /// The head of the response is there, and something waits for the end of its body.
    Answered {
        is_running: bool,
        /// Whether what waited for a running cost to be final is settled already.
        is_final: bool,
    },
    Settled,
}

impl<E: AsEnforcer> Paid<E> {
    /// The charge that the store of `enforcer` has answered with `outcome`. If the store refused, and the request is
    /// forwarded all the same, nothing was charged and nothing is settled.
    pub fn new(enforcer: E, mut charge: Charge, outcome: Outcome) -> Self {
        let stage = match outcome.verdict() {
            Verdict::Admit { wait } if wait.is_zero() => Stage::Open,
            Verdict::Admit { .. } => Stage::Waiting,
            Verdict::Refuse { .. } | Verdict::Never => Stage::Settled,
        };
        let mut paid = Self::open(enforcer, &mut charge, outcome);
        paid.stage = stage;
        paid
    }

    /// The charge of a request that goes ahead at once, of which this takes what has to be kept. A shadow makes no
    /// request wait, even if its limit has a queue.
    #[inline(always)]
    pub(crate) fn open(enforcer: E, charge: &mut Charge, outcome: Outcome) -> Self {
        let only = charge.only().filter(|debit| debit.account.is_none());
        // A known limit is remembered as an index into the enforcer, which the request keeps anyway. This value moves
        // with the future and the body of the response, and a copy of the limit would move along.
        let limits = &enforcer.as_enforcer().known;
        let known = only.and_then(|debit| {
            Some((debit, ShortKey::of(&debit.key)?, position(limits, &debit.limit)?))
        });
        let Some((debit, key, at)) = known else {
            let charge = Charged::other(charge, outcome);
            return Self { enforcer: Some(enforcer), charge, stage: Stage::Open };
        };
        let (cost, is_held) = (debit.cost, debit.limit.is_held());
        let charge = Charged::One(KnownDebit { key, cost, outcome, at, is_held });
        Self { enforcer: Some(enforcer), charge, stage: Stage::Open }
    }

    /// Nothing was charged.
    pub const fn nothing() -> Self {
        Self { enforcer: None, charge: Charged::Nothing, stage: Stage::Settled }
    }

    /// A request that exceeds a limit and is served less.
    pub(crate) fn degraded(enforcer: E, decision: Box<Decision>) -> Self {
        let charge = Charged::Exceeded { decision, is_degraded: true };
        Self { enforcer: Some(enforcer), charge, stage: Stage::Settled }
    }

    /// A request that exceeds a limit on trial. Its client is told nothing.
    pub(crate) fn shadowed(decision: Box<Decision>) -> Self {
        let charge = Charged::Exceeded { decision, is_degraded: false };
        Self { enforcer: None, charge, stage: Stage::Settled }
    }

    /// The wait is over: from now on the request counts, whatever becomes of it.
    pub(crate) fn begin(&mut self) {
        if let Stage::Waiting = self.stage {
            self.stage = Stage::Open;
        }
    }
}

/// What it says.
impl<E: AsEnforcer> Paid<E> {
    /// The handle to the enforcer, where there is something to tell the client.
    #[inline]
    pub fn enforcer(&self) -> Option<&E> {
        self.enforcer.as_ref()
    }

    #[inline]
    fn settings(&self) -> Option<&Enforcer<E::Store>> {
        self.enforcer.as_ref().map(AsEnforcer::as_enforcer)
    }

    /// Whether any limit has decided.
    pub(crate) fn is_decided(&self) -> bool {
        !matches!(self.charge, Charged::Nothing)
    }

    /// The verdict and the status of each limit; of none, if nothing was charged.
    pub fn decision(&self) -> Decision {
        match &self.charge {
            Charged::Nothing => Outcome::free().decision(&Charge::new()),
            Charged::One(one) => match self.limit(one) {
                Some(limit) => one.outcome.decision([(limit, one.cost)]),
                None => Outcome::free().decision(&Charge::new()),
            },
            Charged::Other(other) => other.outcome.decision(&other.charge),
            Charged::Exceeded { decision, .. } => (**decision).clone(),
        }
    }

    /// Leaves the decision, to be made where a handler asks for it.
    #[inline(always)]
    pub(crate) fn leave_decision(&self, extensions: &mut impl Extensions) {
        if let Charged::One(one) = &self.charge {
            if let Some(limit) = self.limit(one) {
                extensions.leave(LazyDecision::of_one(limit, one.cost, &one.outcome));
            }
        } else if self.is_decided() {
            extensions.leave(self.other_decision());
        }
    }

    #[inline(never)]
    fn other_decision(&self) -> LazyDecision {
        if let Charged::Other(other) = &self.charge {
            if let Some(debit) = other.charge.only() {
                return LazyDecision::of_one(&debit.limit, debit.cost, &other.outcome);
            }
        }
        LazyDecision::from(Box::new(self.decision()))
    }

    #[inline]
    fn limit(&self, one: &KnownDebit) -> Option<&Limit> {
        Some(self.settings()?.known[one.at as usize].limit())
    }

    /// Hands out the index of the known limit that was charged, and the value of the `RateLimit` field about it.
    /// Returns `false` where it is not one known limit, or its numbers have changed.
    pub(crate) fn tell(&self, tell: impl FnOnce(usize, &[u8])) -> bool {
        let Some(settings) = self.settings() else { return false };
        let (at, outcome) = match &self.charge {
            Charged::One(one) => (Some(one.at), &one.outcome),
            Charged::Other(other) => {
                let only = other.charge.only();
                (only.and_then(|debit| position(&settings.known, &debit.limit)), &other.outcome)
            }
            Charged::Nothing | Charged::Exceeded { .. } => return false,
        };
        let Some(at) = at.map(|at| at as usize) else { return false };
        let known = &settings.known[at];
        let limit = known.limit();
        let is_plain = !outcome.has_notes() && !outcome.is_by_other_numbers();
        if limit.is_shadow() || !is_plain {
            return false;
        }
        let (remaining, window, soft) = outcome.left_of(0, limit);
        let mut line = Line::new();
        line.text(known.name());
        fields::rate_limit_item(&mut line, remaining, window, soft);
        tell(at, line.as_bytes());
        true
    }

    /// Whether the request exceeds a limit and is served all the same.
    #[inline]
    pub(crate) fn exceeds(&self) -> bool {
        matches!(self.charge, Charged::Exceeded { .. })
    }

    /// Whether the handler is to serve less.
    #[inline]
    pub fn is_degraded(&self) -> bool {
        matches!(self.charge, Charged::Exceeded { is_degraded: true, .. })
    }

    /// Whether it is not settled yet, by whatever response.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Open)
    }

    /// Whether a response can change what is paid, by giving places back or by its cost.
    #[inline]
    pub fn is_settled_by_response(&self) -> bool {
        match &self.charge {
            Charged::One(one) => one.is_held,
            Charged::Other(other) => {
                other.charge.debits().any(|debit| debit.limit.is_held() || debit.account.is_some())
            }
            Charged::Nothing | Charged::Exceeded { .. } => false,
        }
    }

    /// Whether a response may leave a [rest](Self::take_rest) that waits for the end of its body.
    #[inline]
    pub fn may_wait(&self) -> bool {
        match &self.charge {
            Charged::One(one) => one.is_held && self.holds_until_end(),
            Charged::Other(other) => {
                let is_any = self.holds_until_end();
                let mut debits = other.charge.debits();
                debits.any(|debit| debit.may_wait() && (is_any || debit.is_at_end()))
            }
            Charged::Nothing | Charged::Exceeded { .. } => false,
        }
    }

    #[inline]
    fn holds_until_end(&self) -> bool {
        self.settings().is_some_and(|settings| settings.hold == Hold::End)
    }

    /// Whether settling `debit` waits for the end of the body, of a response whose cost may be running. A rule that
    /// reads the trailers waits for them in any case.
    fn waits(&self, debit: &Debit, is_running: bool) -> bool {
        debit.waits(is_running) && (debit.is_at_end() || self.holds_until_end())
    }
}

/// How it is settled.
impl<E: AsEnforcer> Paid<E> {
    /// Settles with the head of the response all that does not wait for the end of its body, and says
    /// whether there is anything to tell the client of it: nothing where a limit further in refused, since
    /// what was charged here is then given back.
    #[inline]
    pub fn close(&mut self, reply: &impl ReplyHead) -> bool {
        let is_refusal = reply.is_refusal();
        // Nearly always what was charged stands. Then it is settled without building a debit. Anything else goes to a
        // function of its own, so that this one is inlined.
        if matches!(&self.charge, Charged::One(one) if !is_refusal && !one.is_held) {
            self.stage = Stage::Settled;
        } else if self.is_open() {
            self.close_by(reply, is_refusal);
        }
        self.enforcer.is_some() && !is_refusal
    }

    #[inline(never)]
    fn close_by(&mut self, reply: &impl ReplyHead, is_refusal: bool) {
        let is_running = reply.running().is_some();
        // Where a limit further in refused, everything is given back with the head. Nothing waits for such a body.
        let waits = |debit: &Debit| !is_refusal && self.waits(debit, is_running);
        let debits = self.debits();
        if !debits.iter().any(waits) {
            if !is_refusal {
                self.note_unread(reply);
            }
            return self.end(|debit| debit.spent(reply));
        }
        let is_asked = debits.iter().any(|debit| debit.account_waits(is_running));
        // Each debit is settled exactly once: here, or when the body ends. `each` passes over those whose cost does not
        // change, so "not yet" is written as the cost that is charged.
        self.each(&debits, |debit| if waits(debit) { debit.cost } else { debit.spent(reply) });
        if let (Charged::Other(other), true) = (&mut self.charge, is_asked) {
            other.reply = Some(reply.record());
        }
        self.stage = Stage::Answered { is_running, is_final: false };
    }

    /// What waits for the end of the body, for the body to take along as its [`BodyGuard`].
    #[inline]
    pub fn take_rest(&mut self) -> Option<Self> {
        let waits = matches!(self.stage, Stage::Answered { .. });
        // `nothing` is settled, so dropping what stays behind does nothing.
        waits.then(|| mem::replace(self, Self::nothing()))
    }

    /// A part of the body has passed. If its running cost is final, it is settled now: the end of the body may come late, or
    /// never.
    fn end_running(&mut self) {
        let Stage::Answered { is_running, is_final: false } = self.stage else { return };
        let Some(reply) = self.reply() else { return };
        if reply.is_final() {
            // Only what is settled by a running cost. A place that is held stays held: the connection goes on.
            let is_due = |debit: &Debit| debit.is_by_running() && self.waits(debit, is_running);
            let spent = |debit: &Debit| if is_due(debit) { debit.spent(reply) } else { debit.cost };
            self.each(&self.debits(), spent);
            self.stage = Stage::Answered { is_running, is_final: true };
        }
    }

    /// Settles what has waited for the end of the body: it has ended, or will not be sent any more.
    fn end_body(&mut self) {
        let stage = mem::replace(&mut self.stage, Stage::Settled);
        let Stage::Answered { is_running, is_final } = stage else { return };
        let reply = self.reply().map(|reply| reply as &dyn Reply);
        if let Some(reply) = reply {
            self.note_unread(reply);
        }
        self.each(&self.debits(), |debit| {
            let is_open = self.waits(debit, is_running) && !(is_final && debit.is_by_running());
            if is_open { debit.spent_at_end(reply) } else { debit.cost }
        });
    }

    /// Settles with the response: keeps what it cost, gives the rest back, charges what is missing.
    pub fn settle(mut self, reply: &dyn Reply) {
        self.end(|debit| debit.spent(reply));
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
    /// it after the request has had its turn does the same.
    pub fn keep(mut self) {
        self.end(kept);
    }

    /// Gives the whole charge back, as far as it has not been recovered since.
    pub fn give_back(mut self) {
        self.end(|_| 0);
    }

    fn end(&mut self, spent: impl Fn(&Debit) -> u64) {
        if self.is_open() {
            self.stage = Stage::Settled;
            self.each(&self.debits(), spent);
        }
    }

    /// What rules are asked about when the body has ended.
    fn reply(&self) -> Option<&ReplyRecord> {
        match &self.charge {
            Charged::Other(other) => other.reply.as_ref(),
            Charged::Nothing | Charged::One(_) | Charged::Exceeded { .. } => None,
        }
    }

    /// Tells the observer if what a response cost was not read.
    fn note_unread(&self, reply: &dyn Reply) {
        let is_guess = self.debits().iter().any(|debit| debit.is_guess(reply));
        if let (true, Some(settings)) = (is_guess, self.settings()) {
            settings.observer.saw(&settings.clock, Event::Unread);
        }
    }

    /// What was charged, in full.
    fn debits(&self) -> Debits<'_> {
        match &self.charge {
            Charged::One(one) => {
                let debit = self.limit(one).map(|limit| Debit {
                    limit: *limit,
                    key: one.key.key(),
                    cost: one.cost,
                    account: None,
                    kind: CostKind::Amount,
                });
                Debits { one: debit, other: None, outcome: Some(&one.outcome) }
            }
            Charged::Other(other) => {
                Debits { one: None, other: Some(&other.charge), outcome: Some(&other.outcome) }
            }
            Charged::Nothing | Charged::Exceeded { .. } => Debits::default(),
        }
    }

    /// Changes each charge into what `spent` says of it.
    fn each(&self, debits: &Debits<'_>, spent: impl Fn(&Debit) -> u64) {
        let Some(settings) = self.settings() else { return };
        for (debit, receipt) in debits.iter().zip(debits.receipts()) {
            let spent = spent(debit);
            // A void receipt stands for a charge that was not made. Giving it back would mint credit.
            if spent != debit.cost && !receipt.is_void() {
                settings.store.settle(debit, &receipt, spent);
            }
        }
    }
}

impl<E: AsEnforcer> BodyGuard for Paid<E> {
    fn passed(&mut self, piece: Piece<'_>) -> bool {
        let is_over = !matches!(piece, Piece::Data(_));
        if !is_over {
            self.end_running();
        }
        is_over
    }

    fn saw_trailers(&mut self, trailers: &dyn Fn() -> Box<dyn HeaderLines>) {
        let Charged::Other(other) = &mut self.charge else { return };
        if let Some(reply) = &mut other.reply {
            reply.add_trailers(trailers());
        }
    }
}

impl<E: AsEnforcer> Drop for Paid<E> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Settled) {
            self.end_unsettled();
        }
    }
}

impl<E: AsEnforcer> Paid<E> {
    #[inline(never)]
    fn end_unsettled(&mut self) {
        match self.stage {
            Stage::Settled => {}
            Stage::Answered { .. } => self.end_body(),
            Stage::Open if !is_unserved() => {
                // A limit that holds nothing keeps its whole charge, which needs no word to the store. Most requests
                // whose client has gone end here.
                if !matches!(&self.charge, Charged::One(KnownDebit { is_held: false, .. })) {
                    // No less than was charged: without a response, a rule cannot tell what to give back.
                    let reply = spent().map(ReplyRecord::of_cost);
                    self.end(|debit| {
                        let spent = reply.as_ref().map_or(0, |reply| debit.spent(reply));
                        spent.max(kept(debit))
                    });
                }
            }
            // Never served: it waited here, or in an inner layer that has said so.
            Stage::Open | Stage::Waiting => self.end(|_| 0),
        }
    }
}

/// What stays charged of a request that was served and not settled otherwise: places are given back.
fn kept(debit: &Debit) -> u64 {
    if debit.limit.is_held() { 0 } else { debit.cost }
}

impl Charged {
    #[inline(never)]
    fn other(charge: &mut Charge, outcome: Outcome) -> Self {
        Self::Other(Box::new(OtherDebits { charge: mem::take(charge), outcome, reply: None }))
    }
}

/// What was charged, and the answer of the store about it.
#[derive(Default)]
struct Debits<'a> {
    one: Option<Debit>,
    other: Option<&'a Charge>,
    outcome: Option<&'a Outcome>,
}

impl Debits<'_> {
    fn iter(&self) -> impl Iterator<Item = &Debit> {
        self.one.iter().chain(self.other.into_iter().flat_map(Charge::debits))
    }

    fn receipts(&self) -> impl Iterator<Item = Receipt> {
        self.outcome.into_iter().flat_map(Outcome::receipts)
    }
}

impl<E: AsEnforcer> fmt::Debug for Paid<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let debits = self.debits();
        let limits = debits.iter().map(|debit| debit.limit);
        f.debug_struct("Paid").field("limits", &Vec::from_iter(limits)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
