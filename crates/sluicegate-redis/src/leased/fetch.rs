//! A lease asked for, by one task for all who wait.

use std::sync::Arc;

use sluicegate_core::adapter::{Answer, Debit, Receipt};
use sluicegate_core::store::Store;

use super::asking::{Came, Coming, ask};
use super::share::Told;
use super::worth::Part;
use super::{Inner, LeasedFuture};
use crate::background::Place;
use crate::failure::{Failure, FailureKind};
use crate::future::RedisFuture;
use crate::runtime::before;
use crate::script::lease::{Lease, Wanted};

/// A lease that is asked for. Those who wait for it are told if it is dropped: the runtime ends.
struct Fetch {
    inner: Arc<Inner>,
    debit: Debit,
    is_done: bool,
}

impl Inner {
    /// Asks in the background; those who wait are told.
    pub(super) fn fetch(self: &Arc<Self>, debit: Debit, wanted: Wanted) {
        let mut fetch = Fetch { inner: Arc::clone(self), debit, is_done: false };
        self.shared().runtime.spawn(async move { fetch.until_nobody_waits(wanted).await });
    }

    /// Shares out what was leased, and says what else is wanted.
    fn granted(
        &self,
        debit: &Debit,
        lease: &Lease,
        (asked, wanted): (u64, Wanted),
    ) -> Option<Wanted> {
        let (at, mut shelf) = (self.moment(), self.table.lock(debit));
        let now = at.now;
        let (share, totals) = shelf.find(debit)?;
        share.tidy(at, totals);
        let (told, surplus) = share.grant(lease, (asked, wanted), now, totals);
        share.tidy(at, totals);
        let late = share.serve_late(now, totals);
        let more = if share.is_wanted() { share.ask(now, &self.batch) } else { None };
        drop(shelf);
        if let Some(part) = surplus {
            self.give_back(debit, &part);
        }
        told.into_iter().chain(late).for_each(|told| self.tell(debit, told));
        more
    }

    fn tell(&self, debit: &Debit, Told { waiter, outcome }: Told) {
        if let Err(Ok(outcome)) = waiter.answer.send(Ok(outcome)) {
            self.undo(&with_cost(debit, waiter.cost), &outcome);
        }
    }

    fn failed(&self, debit: &Debit, failure: &Failure) {
        let waiters = self.table.lock(debit).find(debit).map(|(share, _)| share.fail());
        for waiter in waiters.into_iter().flatten() {
            // Whoever has gone needs no answer.
            let _ = waiter.answer.send(Err(failure.clone()));
        }
    }

    /// What comes after the deadline is there to be spent all the same.
    async fn wait_on(&self, debit: &Debit, asked: u64, (coming, place): (Coming, Place)) {
        let shared = self.shared();
        match before(shared.runtime.sleep(shared.grace), coming).await {
            Some(Ok(lease)) => self.came_late(debit, &lease, asked),
            Some(Err(failure)) if !failure.may_be_applied() => {}
            _ => shared.counters.unanswered(),
        }
        drop(place);
    }

    fn came_late(&self, debit: &Debit, lease: &Lease, asked: u64) {
        let (part, mut shelf) = (Part::new(lease, asked), self.table.lock(debit));
        shelf.totals.leases += 1;
        shelf.totals.leased += lease.taken;
        let surplus = match shelf.find(debit) {
            Some((share, _)) => share.add(part),
            None => Some(part),
        };
        drop(shelf);
        if let Some(part) = surplus {
            self.give_back(debit, &part);
        }
    }

    /// Gives what is unspent of a part back to the server.
    pub(super) fn give_back(&self, debit: &Debit, part: &Part) {
        if part.unspent > 0 {
            let debit = with_cost(debit, part.taken);
            let spent = part.taken - part.unspent;
            self.redis.settle(&debit, &Receipt::from_words(part.cell), spent);
            self.table.lock(&debit).totals.given_back += part.unspent;
        }
    }
}

impl Fetch {
    async fn until_nobody_waits(&mut self, mut wanted: Wanted) {
        let Self { inner, debit, is_done } = self;
        loop {
            let asked = inner.clock.now();
            match ask(inner.shared(), debit, wanted).await {
                Came::InTime(lease) => match inner.granted(debit, &lease, (asked, wanted)) {
                    Some(more) => wanted = more,
                    None => break,
                },
                Came::Not(failure) => {
                    inner.failed(debit, &failure);
                    break;
                }
                Came::Late(coming, place) => {
                    inner.failed(debit, &Failure::new(FailureKind::TooSlow));
                    *is_done = true;
                    return inner.wait_on(debit, asked, (coming, place)).await;
                }
            }
        }
        *is_done = true;
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_done {
            let detail = "the runtime that asked has ended";
            let failure = Failure::because(FailureKind::Unreachable, detail);
            self.inner.failed(&self.debit, &failure);
        }
    }
}

pub(super) fn passed(answer: Answer<RedisFuture>) -> Answer<LeasedFuture> {
    match answer {
        Answer::Now(outcome) => Answer::Now(outcome),
        Answer::Later(future) => Answer::Later(LeasedFuture::passed(future)),
    }
}

fn with_cost(debit: &Debit, cost: u64) -> Debit {
    let mut debit = debit.clone();
    debit.cost = cost;
    debit
}
