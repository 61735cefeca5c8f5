//! One lease, asked within the deadline.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use sluicegate_core::adapter::Debit;

use crate::ask::Question;
use crate::background::Place;
use crate::breaker::Permit;
use crate::failure::{Failure, FailureKind};
use crate::node::{Connection, Node};
use crate::runtime::{Sleep, before};
use crate::script::lease::{Lease, Wanted};
use crate::script::{Call, Row};
use crate::shared::Shared;

/// An answer that is on its way.
pub(super) type Coming = Pin<Box<dyn Future<Output = Result<Lease, Failure>> + Send>>;

/// What came of asking.
pub(super) enum Came {
    InTime(Lease),
    Not(Failure),
    /// It may come yet; the place is to wait for it.
    Late(Coming, Place),
}

/// Asks for a lease, and counts what comes of it.
pub(super) async fn ask(shared: &Arc<Shared>, debit: &Debit, wanted: Wanted) -> Came {
    let begun = Instant::now();
    let came = ask_in_time(shared, debit, wanted).await.unwrap_or_else(Came::Not);
    let counters = &shared.counters;
    match &came {
        Came::InTime(lease) => counters.decided(lease.taken > 0, begun.elapsed()),
        Came::Late(..) => {
            counters.failed_after(&Failure::new(FailureKind::TooSlow), begun.elapsed());
        }
        Came::Not(failure) => {
            counters.failed_after(failure, begun.elapsed());
            if failure.may_be_applied() {
                counters.unanswered();
            }
        }
    }
    came
}

async fn ask_in_time(shared: &Arc<Shared>, debit: &Debit, wanted: Wanted) -> Result<Came, Failure> {
    let question = question(shared, debit, wanted);
    let mut deadline = pin!(shared.runtime.sleep(shared.deadline));
    let (node, mut permit, connection) = reach(shared, question.slot, deadline.as_mut()).await?;
    let place = shared.background.reserve().ok_or_else(|| Failure::new(FailureKind::Full))?;
    let asked = Arc::clone(&node);
    let mut coming: Coming = Box::pin(async move {
        let answer = question.ask(asked, connection).await?;
        Lease::parse(&answer)
            .map_err(|malformed| Failure::because(FailureKind::Script, malformed.to_string()))
    });
    match before(deadline, coming.as_mut()).await {
        Some(lease) => {
            learn(shared, &node, &mut permit, lease.as_ref().map(drop));
            lease.map(Came::InTime)
        }
        None => {
            learn(shared, &node, &mut permit, Err(&Failure::new(FailureKind::TooSlow)));
            Ok(Came::Late(coming, place.in_background()))
        }
    }
}

fn question(shared: &Arc<Shared>, debit: &Debit, wanted: Wanted) -> Question {
    let key = shared.key(debit);
    let row = Row { key: &key, debit };
    let call = Call::lease(&row, wanted, shared.asker(None));
    Question::new(shared, shared.route.slot(&key), &call)
}

/// The connection to whoever has the row, and leave to ask there.
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
