//! Decides charges out of leases.

use std::fmt;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use sluicegate_core::adapter::remote::receipt_words;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::store::{Store, StoreError};
use tokio::sync::oneshot;
use tokio::sync::oneshot::Receiver;

use super::share::{Step, Waiter};
use super::table::Table;
use super::validity::{LeasedTokens, Moment, Validity};
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::observe::report;
use crate::store::{Redis, RedisFuture};

/// How many microseconds the machine's clock may lag behind the time that has passed.
const SLACK: u64 = 20;

/// What all clones of a store share.
pub(super) struct Inner {
    pub(super) redis: Redis,
    pub(super) batch: RangeInclusive<u64>,
    pub(super) table: Table,
    pub(super) clock: Clock,
    pub(super) passed_on: AtomicU64,
}

impl Inner {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.redis.0
    }

    /// The time. Read it before taking a lock, so that no thread waits for the clock.
    #[inline]
    pub(super) fn moment(&self) -> Moment {
        let is_manual = self.clock.as_manual().is_some();
        Moment { now: self.clock.now(), slack: if is_manual { 0 } else { SLACK }, is_manual }
    }

    pub(super) fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        if spent == debit.cost || !self.settle_here(debit, receipt, spent) {
            self.redis.settle(debit, receipt, spent);
        }
    }

    fn settle_here(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        if Validity::of(&debit.limit).is_none() {
            return false;
        }
        let (at, mut shard) = (self.moment(), self.table.lock(debit));
        let Some((share, totals)) = shard.find(debit) else { return false };
        share.expire(at, totals);
        if spent > debit.cost {
            return share.charge_more(spent - debit.cost, totals);
        }
        // What comes back may admit the next request.
        share.forget_refusal();
        let (receipt, _, _) = receipt_words(receipt);
        share.take_back(receipt, debit.cost - spent, at, totals)
    }

    /// Gives back the charge of a request that has gone.
    pub(super) fn undo(&self, debit: &Debit, outcome: &Outcome) {
        if outcome.is_admitted() {
            outcome.receipts().for_each(|receipt| self.settle(debit, &receipt, 0));
        }
    }

    pub(super) fn forget(&self, debit: &Debit) {
        self.table.lock(debit).forget(debit);
    }

    /// Gives unspent tokens back to the server.
    pub(super) fn give_back(&self, debit: &Debit, tokens: &LeasedTokens) {
        if tokens.unspent > 0 {
            self.settle_unspent(debit, tokens);
            self.table.lock(debit).totals.given_back += tokens.unspent;
        }
    }

    /// Like [`give_back`](Self::give_back), without counting.
    pub(super) fn settle_unspent(&self, debit: &Debit, tokens: &LeasedTokens) {
        let debit = with_cost(debit, tokens.taken);
        self.redis.settle(&debit, &tokens.receipt(), tokens.taken - tokens.unspent);
    }

    /// Gives back the unspent tokens of a shard, and returns of how many leases.
    pub(super) fn give_back_shard(&self, shard: usize) -> usize {
        let at = self.moment();
        let unspent: Vec<_> = {
            let mut shard = self.table.shard(shard);
            let (shares, totals) = shard.all();
            let unspent = shares.iter_mut().flat_map(|share| {
                share.expire(at, totals);
                let debit = share.debit.clone();
                share.hand_over().map(move |tokens| (debit.clone(), tokens))
            });
            unspent.collect()
        };
        unspent.iter().for_each(|(debit, tokens)| self.give_back(debit, tokens));
        self.table.shard(shard).report();
        unspent.len()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for at in 0..self.table.len() {
            self.give_back_shard(at);
        }
    }
}

pub(super) fn with_cost(debit: &Debit, cost: u64) -> Debit {
    let mut debit = debit.clone();
    debit.cost = cost;
    debit
}

/// The answer of a [`Leased`](crate::Leased) store that needs Redis.
///
/// If it is dropped before it is ready, its tokens stay with the process.
#[must_use = "futures do nothing unless polled"]
pub struct LeasedFuture(State);

enum State {
    /// The charge was passed on to Redis unchanged.
    PassedOn(RedisFuture),
    /// The request waits for a lease, together with others.
    Waiting { answer: Receiver<Result<Outcome, Failure>>, inner: Arc<Inner>, debit: Box<Debit> },
}

impl LeasedFuture {
    /// The answer to a charge that was passed on to Redis unchanged.
    pub(super) fn pass_on(answer: Answer<RedisFuture>) -> Answer<Self> {
        match answer {
            Answer::Now(outcome) => Answer::Now(outcome),
            Answer::Later(future) => Answer::Later(Self(State::PassedOn(future))),
        }
    }

    pub(super) fn waiting(
        answer: Receiver<Result<Outcome, Failure>>,
        inner: &Arc<Inner>,
        debit: &Debit,
    ) -> Self {
        let (inner, debit) = (Arc::clone(inner), Box::new(debit.clone()));
        Self(State::Waiting { answer, inner, debit })
    }
}

impl Future for LeasedFuture {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::PassedOn(future) => Pin::new(future).poll(cx),
            State::Waiting { answer, .. } => {
                let received = ready!(Pin::new(answer).poll(cx));
                Poll::Ready(received.unwrap_or_else(|_| Err(abandoned())).map_err(StoreError::from))
            }
        }
    }
}

/// The runtime has ended, and with it the task that requested the lease.
fn abandoned() -> Failure {
    Failure::because(FailureKind::Unreachable, "the runtime of the store has ended")
}

impl Drop for LeasedFuture {
    fn drop(&mut self) {
        if let State::Waiting { answer, inner, debit } = &mut self.0 {
            // Closed first: an answer comes either before, and is taken back here, or never.
            answer.close();
            if let Ok(Ok(outcome)) = answer.try_recv() {
                inner.undo(debit, &outcome);
            }
        }
    }
}

impl fmt::Debug for LeasedFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeasedFuture")
    }
}

impl Inner {
    /// The debit and how long its tokens are valid, if it can be leased.
    #[inline]
    fn leasable<'c>(&self, charge: &'c Charge) -> Option<(&'c Debit, Validity)> {
        if charge.len() != 1 || charge.patience().is_some() {
            return None;
        }
        let debit = charge.debits().next()?;
        let validity = Validity::of(&debit.limit)?;
        // A cost of zero only looks, and one that no lease can hold would wait for ever.
        let fits = debit.cost > 0 && debit.cost <= validity.most().min(*self.batch.end());
        fits.then_some((debit, validity))
    }

    fn pass_on(&self, charge: &Charge) -> Answer<LeasedFuture> {
        self.passed_on.fetch_add(1, Ordering::Relaxed);
        report::passed_on();
        LeasedFuture::pass_on(self.redis.take(charge))
    }

    pub(super) fn take(self: &Arc<Self>, charge: &Charge) -> Answer<LeasedFuture> {
        let Some((debit, validity)) = self.leasable(charge) else { return self.pass_on(charge) };
        // The clock before the lock, or a thread that waited for it would see an older time than one that came later.
        let (at, mut shard) = (self.moment(), self.table.lock(debit));
        for (debit, tokens) in shard.hand_over_others(debit, at) {
            // Under the lock, so that it reaches the server before the lease of any thread, and the new numbers do not take
            // it over as spent.
            self.settle_unspent(&debit, &tokens);
            shard.totals.given_back += tokens.unspent;
        }
        let found = shard.find_or_make(debit, validity, &self.batch, at);
        let Some((share, totals)) = found else {
            drop(shard);
            return self.pass_on(charge);
        };
        share.expire(at, totals);
        match share.step(at.now, debit.cost, totals) {
            Step::Decide(outcome, false) => Answer::Now(Ok(outcome)),
            // If a test turned the clock meanwhile, it would step back when the request arrives.
            Step::Decide(outcome, true) if at.is_manual => Answer::Now(Ok(outcome)),
            Step::Decide(outcome, true) => {
                let wanted =
                    if self.can_request() { share.request(at.now, &self.batch) } else { None };
                if wanted.is_some() {
                    shard.report();
                }
                drop(shard);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Now(Ok(outcome))
            }
            // The request joins the queue and the lease is requested under one lock. So no request waits for a lease
            // that nobody asks for.
            Step::Wait if self.can_request() => {
                let (sender, receiver) = oneshot::channel();
                share.wait(Waiter { cost: debit.cost, answer: sender });
                let wanted = share.request(at.now, &self.batch);
                if wanted.is_some() {
                    shard.report();
                }
                drop(shard);
                if let Some(wanted) = wanted {
                    self.fetch(debit.clone(), wanted);
                }
                Answer::Later(LeasedFuture::waiting(receiver, self, debit))
            }
            Step::Wait | Step::PassOn => {
                drop(shard);
                self.pass_on(charge)
            }
        }
    }

    /// Whether a request can be sent. If not, the store below reports why.
    fn can_request(&self) -> bool {
        let shared = self.shared();
        shared.runtime.handle().is_some() && !shared.route.is_shut()
    }
}
