//! Requests a lease within the deadline.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use sluicegate_core::adapter::Debit;

use crate::exchange::background::Reservation;
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::runtime::{Sleep, before};
use crate::script::lease::{Lease, LeaseRequest};
use crate::script::{Call, Row};
use crate::wire::breaker::Permit;
use crate::wire::node::{Connection, Node};

/// A lease that is on its way.
pub(super) type PendingLease = Pin<Box<dyn Future<Output = Result<Lease, Failure>> + Send>>;

/// The result of a request.
pub(super) enum Received {
    InTime(Lease),
    Failed(Failure),
    /// The lease may still come. The reservation is for waiting in the background.
    Late(PendingLease, Reservation),
}

/// Requests a lease, and counts the result.
pub(super) async fn request(shared: &Arc<Shared>, debit: &Debit, wanted: LeaseRequest) -> Received {
    let begun = Instant::now();
    let received = request_in_time(shared, debit, wanted).await.unwrap_or_else(Received::Failed);
    let counters = &shared.counters;
    match &received {
        Received::InTime(lease) => counters.decided(lease.taken > 0, begun.elapsed()),
        Received::Late(..) => {
            counters.failed_after(&Failure::new(FailureKind::TooSlow), begun.elapsed());
        }
        Received::Failed(failure) => {
            counters.failed_after(failure, begun.elapsed());
            if failure.may_be_applied() {
                counters.unanswered();
            }
        }
    }
    received
}

async fn request_in_time(
    shared: &Arc<Shared>,
    debit: &Debit,
    wanted: LeaseRequest,
) -> Result<Received, Failure> {
    let request = call(shared, debit, wanted);
    let mut deadline = pin!(shared.runtime.sleep(shared.deadline));
    let (node, mut permit, connection) = reach(shared, request.slot, deadline.as_mut()).await?;
    let reservation =
        shared.background.reserve_call().ok_or_else(|| Failure::new(FailureKind::Full))?;
    let on = Arc::clone(&node);
    let mut pending: PendingLease = Box::pin(async move {
        let answer = request.send(on, connection).await?;
        Lease::parse(&answer)
            .map_err(|malformed| Failure::because(FailureKind::Script, malformed.to_string()))
    });
    match before(deadline, pending.as_mut()).await {
        Some(lease) => {
            learn(shared, &node, &mut permit, lease.as_ref().map(drop));
            lease.map(Received::InTime)
        }
        None => {
            learn(shared, &node, &mut permit, Err(&Failure::new(FailureKind::TooSlow)));
            Ok(Received::Late(pending, reservation.in_background()))
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
            learn(shared, &node, &mut permit, Err(&failure));
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

fn learn(shared: &Shared, node: &Arc<Node>, permit: &mut Permit, outcome: Result<(), &Failure>) {
    node.learn(permit, outcome);
    if outcome.is_err_and(|failure| failure.kind() != FailureKind::WrongType) {
        shared.route.look();
    }
}
