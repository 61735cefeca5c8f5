//! The task that requests leases of one key for all requests that wait, each within the deadline.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use sluicegate_core::adapter::{Debit, Reservation};

use super::inner::{Inner, with_cost};
use super::share::WaiterAnswer;
use super::validity::LeasedTokens;
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::runtime::{Sleep, before};
use crate::script::lease::{Lease, LeaseRequest};
use crate::script::{Call, Row};
use crate::wire::node::{Connection, Node};
use sluicegate_core::adapter::breaker::Permit;

/// The task. If the runtime ends and drops it, the requests that wait fail.
struct Fetch {
    inner: Arc<Inner>,
    debit: Debit,
    is_done: bool,
}

impl Inner {
    /// Requests a lease in the background, and answers the requests that wait.
    pub(super) fn fetch(self: &Arc<Self>, debit: Debit, wanted: LeaseRequest) {
        let mut fetch = Fetch { inner: Arc::clone(self), debit, is_done: false };
        self.shared().runtime.spawn(async move { fetch.until_no_request_waits(wanted).await });
    }

    /// Hands out a lease. Returns the next one to request, if requests still wait.
    fn granted(
        &self,
        debit: &Debit,
        lease: &Lease,
        (asked, wanted): (u64, LeaseRequest),
    ) -> Option<LeaseRequest> {
        let (at, mut shard) = (self.moment(), self.table.lock(debit));
        let now = at.now;
        let (share, totals) = shard.find(debit)?;
        // Before the grant, so that what has expired makes room; and after it, since the lease may have travelled so
        // long that some of its tokens have drained already.
        share.expire(at, totals);
        let (answered, surplus) = share.grant(lease, (asked, wanted), now, totals);
        share.expire(at, totals);
        // Requests that came while the lease was under way, first come first served.
        let late = share.serve_late(now, totals);
        let more = if share.is_wanted() { share.request(now, &self.batch) } else { None };
        drop(shard);
        if let Some(tokens) = surplus {
            self.give_back_surplus(debit, &tokens);
        }
        // Without the lock: a waiter that has gone is undone, which takes the lock again.
        answered.into_iter().chain(late).for_each(|answered| self.answer(debit, answered));
        more
    }

    fn answer(&self, debit: &Debit, WaiterAnswer { waiter, outcome }: WaiterAnswer) {
        if let Err(Ok(outcome)) = waiter.answer.send(Ok(outcome)) {
            self.undo(&with_cost(debit, waiter.cost), &outcome);
        }
    }

    /// Returns how often rows were reset so far; `None` if that of the lease was, since it was requested.
    fn failed(&self, debit: &Debit, failure: &Failure) -> Option<u64> {
        let mut shard = self.table.lock(debit);
        let resets = shard.resets();
        let (waiters, is_void) = shard.find(debit).map(|(share, _)| share.fail())?;
        drop(shard);
        for waiter in waiters {
            // A request that has gone needs no answer.
            let _ = waiter.answer.send(Err(failure.clone()));
        }
        (!is_void).then_some(resets)
    }

    /// A lease that arrives after the deadline can still be spent, unless rows were reset more often than `resets`.
    async fn wait_on(
        &self,
        debit: &Debit,
        (asked, resets): (u64, Option<u64>),
        (pending, reservation): (PendingLease, Reservation),
    ) {
        let shared = self.shared();
        match before(shared.runtime.sleep(shared.grace), pending).await {
            // Its tokens are charged, so they are spent here rather than given back.
            Some(Ok(lease)) => self.arrived_late(debit, &lease, (asked, resets)),
            Some(Err(failure)) if !failure.may_be_applied() => {}
            _ => shared.counters.each.unanswered.add(1),
        }
        drop(reservation);
    }

    fn arrived_late(&self, debit: &Debit, lease: &Lease, (asked, resets): (u64, Option<u64>)) {
        let (tokens, mut shard) = (LeasedTokens::new(lease, asked), self.table.lock(debit));
        shard.totals.leases += 1;
        shard.totals.leased += lease.taken;
        // The server may have written these tokens before the reset or after it, so nobody spends them or gives them
        // back.
        if resets != Some(shard.resets()) {
            shard.totals.expired += lease.taken;
            return;
        }
        let surplus = match shard.find(debit) {
            Some((share, _)) => share.add(tokens),
            None => Some(tokens),
        };
        drop(shard);
        if let Some(tokens) = surplus {
            self.give_back_surplus(debit, &tokens);
        }
    }

    /// Gives back tokens of a lease that has arrived. If other numbers of the limit decide, they may have been refused because
    /// of it.
    fn give_back_surplus(&self, debit: &Debit, tokens: &LeasedTokens) {
        self.give_back(debit, tokens);
        if debit.limit.is_carried() {
            self.table.lock(debit).forget_refusals(debit);
        }
    }
}

impl Fetch {
    async fn until_no_request_waits(&mut self, mut wanted: LeaseRequest) {
        let Self { inner, debit, is_done } = self;
        loop {
            let asked = inner.clock.now();
            match request(inner.shared(), debit, wanted).await {
                LeaseResult::InTime(lease) => match inner.granted(debit, &lease, (asked, wanted)) {
                    Some(more) => wanted = more,
                    None => break,
                },
                LeaseResult::Failed(failure) => {
                    inner.failed(debit, &failure);
                    break;
                }
                LeaseResult::Late(pending, reservation) => {
                    // The requests that wait have the same deadline. They are told now; the lease itself is awaited on.
                    let resets = inner.failed(debit, &Failure::new(FailureKind::TooSlow));
                    *is_done = true;
                    return inner.wait_on(debit, (asked, resets), (pending, reservation)).await;
                }
            }
        }
        *is_done = true;
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_done {
            let detail = "the runtime of the store has ended";
            let failure = Failure::because(FailureKind::Unreachable, detail);
            self.inner.failed(&self.debit, &failure);
        }
    }
}

/// A lease that is on its way.
pub(super) type PendingLease = Pin<Box<dyn Future<Output = Result<Lease, Failure>> + Send>>;

/// The result of a request.
pub(super) enum LeaseResult {
    InTime(Lease),
    Failed(Failure),
    /// The lease may still come. The reservation is for waiting in the background.
    Late(PendingLease, Reservation),
}

/// Requests a lease, and counts the result.
pub(super) async fn request(
    shared: &Arc<Shared>,
    debit: &Debit,
    wanted: LeaseRequest,
) -> LeaseResult {
    let begun = Instant::now();
    let received = request_in_time(shared, debit, wanted).await.unwrap_or_else(LeaseResult::Failed);
    let counters = &shared.counters;
    match &received {
        LeaseResult::InTime(lease) => counters.decided(lease.taken > 0, begun.elapsed()),
        LeaseResult::Late(..) => {
            counters.failed_after(&Failure::new(FailureKind::TooSlow), begun.elapsed());
        }
        LeaseResult::Failed(failure) => {
            counters.failed_after(failure, begun.elapsed());
            if failure.may_be_applied() {
                counters.each.unanswered.add(1);
            }
        }
    }
    received
}

async fn request_in_time(
    shared: &Arc<Shared>,
    debit: &Debit,
    wanted: LeaseRequest,
) -> Result<LeaseResult, Failure> {
    let request = call(shared, debit, wanted);
    let mut deadline = pin!(shared.runtime.sleep(shared.deadline));
    let (node, mut permit, connection) = reach(shared, request.slot, deadline.as_mut()).await?;
    let reservation = shared.background.call().ok_or_else(|| Failure::new(FailureKind::Full))?;
    let on = Arc::clone(&node);
    let mut pending: PendingLease = Box::pin(async move {
        let answer = request.send(on, connection).await?;
        Lease::parse(&answer)
            .map_err(|malformed| Failure::because(FailureKind::Script, malformed.to_string()))
    });
    match before(deadline, pending.as_mut()).await {
        Some(lease) => {
            shared.learn(Some((&node, &mut permit)), lease.as_ref().map(drop));
            lease.map(LeaseResult::InTime)
        }
        None => {
            shared.learn(Some((&node, &mut permit)), Err(&Failure::new(FailureKind::TooSlow)));
            reservation.leave();
            Ok(LeaseResult::Late(pending, reservation))
        }
    }
}

fn call(shared: &Arc<Shared>, debit: &Debit, wanted: LeaseRequest) -> Request {
    let key = shared.key(debit);
    let row = Row { key: &key, debit };
    let call = Call::lease(&row, wanted, shared.caller(None));
    Request::new(shared, shared.route.slot(&key), call)
}

/// The node that has the row, a permit of its breaker, and its connection.
async fn reach(
    shared: &Arc<Shared>,
    slot: u16,
    mut deadline: Pin<&mut Sleep>,
) -> Result<(Arc<Node>, Permit, Connection), Failure> {
    let node = match shared.route.known(slot) {
        Some(node) => node,
        None => in_time(deadline.as_mut(), shared.route.clone().node(slot)).await?,
    };
    let Some(mut permit) = node.enter() else {
        shared.route.look();
        return Err(Failure::new(FailureKind::BreakerOpen));
    };
    let connection = match node.current() {
        Some(connection) => Ok(connection),
        None => in_time(deadline, Arc::clone(&node).connection()).await,
    };
    match connection {
        Ok(connection) => Ok((node, permit, connection)),
        Err(failure) => {
            shared.learn(Some((&node, &mut permit)), Err(&failure));
            Err(failure)
        }
    }
}

async fn in_time<T>(
    deadline: Pin<&mut Sleep>,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let in_vain =
        || Failure::because(FailureKind::Unreachable, "no connection within the deadline");
    before(deadline, future).await.unwrap_or_else(|| Err(in_vain()))
}
