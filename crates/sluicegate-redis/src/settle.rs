//! What is sent in the background: settlements, and charges that nobody waited for, given back.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use sluicegate_core::adapter::remote;
use sluicegate_core::adapter::{Charge, Debit, Receipt};

use crate::ask::Question;
use crate::failure::{Failure, FailureKind};
use crate::node::{Connection, Node};
use crate::places::Claim;
use crate::runtime::before;
use crate::script::{Call, Reply, Row};
use crate::shared::Shared;
use crate::visit::{Late, read};

/// Makes the charge that `receipt` stands for into one of `spent`.
///
/// It is handed to the connection before this returns, where there is one: what the same task asks next
/// is decided after it.
pub(crate) fn settle(shared: &Arc<Shared>, debit: &Debit, receipt: &Receipt, spent: u64) {
    if spent == debit.cost || receipt.is_void() {
        return;
    }
    let change = shared.refusals.change(debit);
    let held = debit.limit.is_held() && spent < debit.cost;
    let claim = held.then(|| shared.places.returned(shared.key(debit), debit.cost - spent));
    if shared.runtime.handle().is_none() {
        return shared.counters.settlement_dropped(&outside());
    }
    let Some(place) = shared.background.place() else {
        claim.iter().for_each(Claim::doubt);
        let full = Failure::because(FailureKind::TooSlow, "too much is under way already");
        return shared.counters.settlement_dropped(&full);
    };
    let question = settlement(shared, debit, receipt, spent);
    let settling = Arc::clone(shared);
    let mut task = Box::pin(async move {
        let delivered = in_time(&settling, deliver(&settling, &question)).await;
        drop(change);
        match delivered {
            Ok(()) => settling.counters.settled(),
            Err(failure) => {
                claim.iter().for_each(Claim::doubt);
                settling.counters.settlement_dropped(&failure);
            }
        }
        drop(claim);
        drop(place);
    });
    if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        shared.runtime.spawn(task);
    }
}

/// Without a runtime, nothing can be sent.
pub(crate) fn outside() -> Failure {
    let detail = "make the store, or ask it for the first time, inside of a tokio runtime";
    Failure::because(FailureKind::Unreachable, detail)
}

/// Waits in the background for an answer that nobody else waits for, and gives back what it charged.
pub(crate) fn give_back_later(shared: &Arc<Shared>, late: Late, charge: Charge) {
    let Late { answer, node, on, claim, place } = late;
    let shared = Arc::clone(shared);
    shared.clone().runtime.spawn(async move {
        match before(shared.runtime.sleep(shared.grace), answer).await {
            Some(Ok(answer)) => {
                if !give_back(&shared, &charge, &answer, (node, on)).await {
                    claim.iter().for_each(Claim::doubt);
                }
            }
            Some(Err(failure)) if !failure.may_be_applied() => {}
            _ => {
                claim.iter().for_each(Claim::doubt);
                shared.counters.unanswered();
            }
        }
        drop(claim);
        drop(place);
    });
}

/// Waits in the background for an answer that charges nothing, so that no more is under way than there is room for.
pub(crate) fn wait_out(shared: &Arc<Shared>, Late { answer, place, .. }: Late) {
    let over = shared.runtime.sleep(shared.grace);
    shared.runtime.spawn(async move {
        let _ = before(over, answer).await;
        drop(place);
    });
}

/// Whether the server counts nothing of it any more. On the connection that the answer came on, since the server
/// answers there; the next one may not be made yet.
async fn give_back(
    shared: &Arc<Shared>,
    charge: &Charge,
    answer: &[u8],
    (node, on): (Arc<Node>, Connection),
) -> bool {
    let Ok(reply) = read(charge, answer) else {
        shared.counters.unanswered();
        return false;
    };
    if !reply.verdict.is_admitted() {
        return true;
    }
    let charged = charge.debits().zip(receipts(&reply)).filter(|(_, receipt)| !receipt.is_void());
    for (debit, receipt) in charged {
        let _change = shared.refusals.change(debit);
        let question = settlement(shared, debit, &receipt, 0);
        let delivered = async {
            match question.ask(Arc::clone(&node), on.clone()).await {
                Err(failure) if !failure.may_be_applied() => deliver(shared, &question).await,
                sent => sent.map(drop),
            }
        };
        if let Err(failure) = in_time(shared, delivered).await {
            shared.counters.settlement_dropped(&failure);
            return false;
        }
    }
    shared.counters.gave_back();
    true
}

/// What it takes to give back what was charged, in the order of what was owed.
pub(crate) fn receipts(reply: &Reply) -> Vec<Receipt> {
    remote::outcome(reply.verdict, reply.facts.iter().cloned()).receipts().collect()
}

fn settlement(shared: &Arc<Shared>, debit: &Debit, receipt: &Receipt, spent: u64) -> Question {
    let key = shared.key(debit);
    let row = Row { key: &key, debit };
    let call = Call::settle(&row, receipt, spent, shared.asker(None));
    Question::new(shared, shared.route.slot(&key), &call)
}

async fn in_time(
    shared: &Shared,
    delivered: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let delivered = before(shared.runtime.sleep(shared.grace), delivered).await;
    delivered.unwrap_or_else(|| Err(Failure::new(FailureKind::TooSlow)))
}

/// Tries again as long as it cannot have been applied.
async fn deliver(shared: &Shared, question: &Question) -> Result<(), Failure> {
    let mut attempts = 0;
    loop {
        let failure = match send(shared, question).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        if failure.may_be_applied() || !is_passing(failure.kind()) {
            return Err(failure);
        }
        attempts += 1;
        shared.runtime.timer(shared.backoff.after(attempts)).await;
    }
}

/// Asks the server that has the rows, once. With leave, as any other question: while the breaker is open, one at a
/// time finds out.
pub(crate) async fn send(shared: &Shared, question: &Question) -> Result<Vec<u8>, Failure> {
    let node = match shared.route.known(question.slot) {
        Some(node) => node,
        None => shared.route.clone().node(question.slot).await?,
    };
    let mut permit = node.enter().ok_or_else(|| Failure::new(FailureKind::BreakerOpen))?;
    let connection = match node.current() {
        Some(connection) => connection,
        None => Arc::clone(&node).connection().await?,
    };
    let mut learn = |outcome: Result<(), &Failure>| {
        // Whether decisions are made in time is for decisions to tell.
        if permit.is_probe() {
            node.learn(&mut permit, outcome);
        }
    };
    let mut answer = pin!(question.ask(Arc::clone(&node), connection));
    let in_time = before(shared.runtime.sleep(shared.deadline), answer.as_mut()).await;
    let sent = match in_time {
        Some(sent) => {
            learn(sent.as_ref().map(drop));
            sent
        }
        None => {
            // It is waited for all the same, but tells nothing of the server any more.
            learn(Err(&Failure::new(FailureKind::TooSlow).after_sending()));
            answer.await
        }
    };
    if sent.is_err() {
        shared.route.look();
    }
    sent
}

/// Whether it may be otherwise in a moment.
const fn is_passing(kind: FailureKind) -> bool {
    !matches!(kind, FailureKind::WrongType | FailureKind::Script | FailureKind::Protocol)
}
