//! A lease asked for, by one task for all who wait.

use std::sync::Arc;

use sluicegate_core::{Answer, Mark, Owed, Store};

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
    owed: Owed,
    is_done: bool,
}

impl Inner {
    /// Asks in the background; those who wait are told.
    pub(super) fn fetch(self: &Arc<Self>, owed: Owed, wanted: Wanted) {
        let mut fetch = Fetch { inner: Arc::clone(self), owed, is_done: false };
        self.shared().runtime.spawn(async move { fetch.until_nobody_waits(wanted).await });
    }

    /// Shares out what was leased, and says what else is wanted.
    fn granted(
        &self,
        owed: &Owed,
        lease: &Lease,
        (asked, wanted): (u64, Wanted),
    ) -> Option<Wanted> {
        let (at, mut shelf) = (self.moment(), self.table.lock(owed));
        let now = at.now;
        let (share, totals) = shelf.find(owed)?;
        share.tidy(at, totals);
        let largest = *self.batch.end();
        let (told, surplus) = share.grant(lease, (asked, wanted), now, largest, totals);
        share.tidy(at, totals);
        let late = share.serve_late(now, totals);
        let more = if share.is_wanted() { share.ask(now, &self.batch) } else { None };
        drop(shelf);
        if let Some(part) = surplus {
            self.give_back(owed, &part);
        }
        told.into_iter().chain(late).for_each(|told| self.tell(owed, told));
        more
    }

    fn tell(&self, owed: &Owed, Told { waiter, outcome }: Told) {
        if let Err(Ok(outcome)) = waiter.answer.send(Ok(outcome)) {
            self.undo(&with_cost(owed, waiter.cost), &outcome);
        }
    }

    fn failed(&self, owed: &Owed, failure: &Failure) {
        let waiters = self.table.lock(owed).find(owed).map(|(share, _)| share.fail());
        for waiter in waiters.into_iter().flatten() {
            // Whoever has gone needs no answer.
            let _ = waiter.answer.send(Err(failure.clone()));
        }
    }

    /// What comes after the deadline is there to be spent all the same.
    async fn wait_on(&self, owed: &Owed, asked: u64, (coming, place): (Coming, Place)) {
        let shared = self.shared();
        match before(shared.runtime.sleep(shared.grace), coming).await {
            Some(Ok(lease)) => self.came_late(owed, &lease, asked),
            Some(Err(failure)) if !failure.may_be_applied() => {}
            _ => shared.counters.unanswered(),
        }
        drop(place);
    }

    fn came_late(&self, owed: &Owed, lease: &Lease, asked: u64) {
        let (part, mut shelf) = (Part::new(lease, asked), self.table.lock(owed));
        shelf.totals.leases += 1;
        shelf.totals.leased += lease.taken;
        let surplus = match shelf.find(owed) {
            Some((share, _)) => share.add(part),
            None => Some(part),
        };
        drop(shelf);
        if let Some(part) = surplus {
            self.give_back(owed, &part);
        }
    }

    /// Gives what is unspent of a part back to the server.
    pub(super) fn give_back(&self, owed: &Owed, part: &Part) {
        if part.unspent > 0 {
            let owed = with_cost(owed, part.taken);
            let spent = part.taken - part.unspent;
            self.redis.settle(&owed, &Mark::from_words(part.cell), spent);
            self.table.lock(&owed).totals.given_back += part.unspent;
        }
    }
}

impl Fetch {
    async fn until_nobody_waits(&mut self, mut wanted: Wanted) {
        let Self { inner, owed, is_done } = self;
        loop {
            let asked = inner.clock.now();
            match ask(inner.shared(), owed, wanted).await {
                Came::InTime(lease) => match inner.granted(owed, &lease, (asked, wanted)) {
                    Some(more) => wanted = more,
                    None => break,
                },
                Came::Not(failure) => {
                    inner.failed(owed, &failure);
                    break;
                }
                Came::Late(coming, place) => {
                    inner.failed(owed, &Failure::new(FailureKind::TooSlow));
                    *is_done = true;
                    return inner.wait_on(owed, asked, (coming, place)).await;
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
            self.inner.failed(&self.owed, &failure);
        }
    }
}

pub(super) fn passed(answer: Answer<RedisFuture>) -> Answer<LeasedFuture> {
    match answer {
        Answer::Now(outcome) => Answer::Now(outcome),
        Answer::Later(future) => Answer::Later(LeasedFuture::passed(future)),
    }
}

fn with_cost(owed: &Owed, cost: u64) -> Owed {
    let mut owed = owed.clone();
    owed.cost = cost;
    owed
}
