//! One call within the deadline: answered in time, or nothing is charged.
//!
//! A call is never repeated on a guess. If a connection breaks between call and answer, repeating the call could charge
//! twice, and giving back could return what was never taken. Charging too much is the safer error: the charge is kept if
//! it was made, and `unanswered` counts it. A call is repeated only if the server said that it did nothing: `NOSCRIPT`,
//! `MOVED`, `ASK`, `TRYAGAIN`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Reservation};

use super::settle::{CallReservation, LateAnswer, PendingAnswer, read, receipts};
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::exchange::{heartbeat, settle};
use crate::failure::{Failure, FailureKind};
use crate::places::Claim;
use crate::refusals::Observation;
use crate::runtime::{Sleep, before};
use crate::script::{Operation, Reply};
use crate::wire::node::{Connection, Node};
use sluicegate_core::adapter::breaker::Permit;

/// A call that was prepared. Nothing is sent before it is polled.
pub(crate) type PendingReply = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// One call within the deadline.
///
/// If it is dropped before the answer is there, or the deadline passes, a task remains that waits for the answer and
/// gives back what it charged.
struct TimedCall {
    shared: Arc<Shared>,
    operation: Operation,
    charge: Charge,
    /// The node that is called, once it is known, and the permit to call it.
    node: Option<Arc<Node>>,
    permit: Option<Permit>,
    /// When the deadline passes.
    due: u64,
    /// The answer, once the call is sent.
    answer: Option<(PendingAnswer, Connection)>,
    /// The number of the connection that it is sent on.
    generation: Option<u64>,
    observation: Observation,
    /// The places that it charges, if any.
    claim: Option<Claim>,
    /// Held until the answer is there, in time or late.
    reservation: Option<CallReservation>,
}

/// Prepares an operation on a charge whose rows, with these `keys`, lie in one `slot`.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    operation: Operation,
    charge: Charge,
    keys: &[Vec<u8>],
    within: (u16, Duration),
) -> Result<PendingReply, Failure> {
    let reserve = || reserve(shared).map(CallReservation::Own);
    begin_within(shared, operation, charge, keys, within, reserve)
}

/// Reserves a place in the background. Without one, a late answer could not be awaited, and what it charged would stay
/// charged. Too many calls are an error, and no charge.
pub(super) fn reserve(shared: &Shared) -> Result<Reservation, Failure> {
    shared.background.call().ok_or_else(|| Failure::new(FailureKind::Full))
}

/// Prepares an operation. `reserve` gives it its place in the background.
pub(super) fn begin_within(
    shared: &Arc<Shared>,
    operation: Operation,
    charge: Charge,
    keys: &[Vec<u8>],
    (slot, deadline): (u16, Duration),
    reserve: impl FnOnce() -> Result<CallReservation, Failure>,
) -> Result<PendingReply, Failure> {
    let node = shared.route.known(slot);
    let permit = node.as_ref().map(|node| enter(shared, node)).transpose()?;
    // Before anything is sent, so that a late answer can be awaited.
    let reservation = Some(reserve()?);
    // Before the call: what other calls change from here on makes its answer worthless.
    let observation = shared.refusals.observe(operation, &charge);
    let now = shared.runtime.clock.now();
    let claim = match operation {
        Operation::Take => Claim::charging(&shared.places, &charge, keys, now),
        Operation::Peek | Operation::Reset => None,
    };
    if claim.is_some() {
        heartbeat::keep(shared);
    }
    let at = (slot, claim.as_ref());
    let request = Request::of_charge(shared, operation, &charge, keys, at);
    let due = now.saturating_add(deadline.as_micros() as u64);
    let deadline = shared.runtime.sleep(deadline);
    let call = TimedCall {
        shared: Arc::clone(shared),
        operation,
        charge,
        node,
        permit,
        due,
        answer: None,
        generation: None,
        observation,
        claim,
        reservation,
    };
    Ok(Box::pin(call.run(slot, request, deadline)))
}

impl TimedCall {
    async fn run(mut self, slot: u16, request: Request, deadline: Sleep) -> Result<Reply, Failure> {
        // The deadline covers everything: learning the slot, connecting, waiting for a batch, and the answer.
        let answer = match before(deadline, self.ask(slot, request)).await {
            Some(answer) => answer,
            None => Err(self.too_late()),
        };
        let may_be_applied = answer.as_ref().map_or_else(Failure::may_be_applied, |_| true);
        let is_answered = answer.is_ok();
        let reply = answer.and_then(|answer| read(&self.charge, &answer));
        // An answer that came in time but makes no sense counts against the connection, and not as an answer in time.
        match &reply {
            Err(malformed) if is_answered => self.distrust(malformed),
            outcome => self.learn(outcome.as_ref().map(drop)),
        }
        if self.operation == Operation::Take && may_be_applied && reply.is_err() {
            self.shared.counters.each.unanswered.add(1);
        }
        match (&mut self.claim, &reply) {
            (Some(claim), Ok(reply)) if reply.verdict.is_admitted() => {
                claim.admitted(&receipts(reply));
            }
            // The server may count places that nobody here holds. The next heartbeat tells it the true number.
            (Some(claim), Err(_)) if may_be_applied => claim.doubt(),
            _ => {}
        }
        self.reservation = None;
        // The claim counts places until here. Those that were charged are kept.
        self.claim = None;
        // Before the caller sees the reply: its next request must not be decided by what was known before.
        self.observation.learn(&self.charge, reply.as_ref().ok());
        reply
    }

    async fn ask(&mut self, slot: u16, request: Request) -> Result<Vec<u8>, Failure> {
        // Without a map of slots, the breaker is asked only once the node is known.
        let node = match &self.node {
            Some(node) => Arc::clone(node),
            None => {
                let node = self.shared.route.clone().node(slot).await?;
                self.permit = Some(enter(&self.shared, &node)?);
                Arc::clone(self.node.insert(node))
            }
        };
        let connection = match node.current() {
            Some(connection) => connection,
            None => Arc::clone(&node).connection().await?,
        };
        self.observation.sent(connection.epoch);
        self.generation = Some(connection.generation);
        let on = connection.clone();
        let answer: PendingAnswer = Box::pin(async move { request.send_once(node, on).await });
        // It is kept beside this future, so that it outlives it: an answer that is not heard cannot be given back.
        let (answer, _) = self.answer.insert((answer, connection));
        let answer = answer.await;
        self.answer = None;
        answer
    }

    fn too_late(&mut self) -> Failure {
        let failure = match self.answer {
            Some(_) => Failure::new(FailureKind::TooSlow),
            None => Failure::because(FailureKind::Unreachable, "no connection within the deadline"),
        };
        // The breaker learns of it with the caller.
        self.leave(None);
        failure
    }

    fn learn(&mut self, outcome: Result<(), &Failure>) {
        self.shared.learn(self.node.as_ref().zip(self.permit.as_mut()), outcome);
    }

    /// Replaces the connection: after an answer that cannot be read, no other answer on it can be trusted.
    fn distrust(&mut self, malformed: &Failure) {
        let (Some(node), Some(permit)) = (&self.node, &mut self.permit) else { return };
        let failure = Failure::because(FailureKind::Protocol, malformed.to_string());
        node.learn(permit, Err(&failure));
        // Not one that has replaced it meanwhile.
        if let Some(generation) = self.generation {
            node.lose(generation, &failure);
        }
    }

    /// Leaves a task behind that gives back what may be charged, and reports to the breaker with `permit`.
    fn leave(&mut self, permit: Option<Permit>) {
        // Nothing is left behind for a call that was not sent, or whose answer is there: both fields are then empty.
        let (Some((answer, connection)), Some(node), Some(reservation)) =
            (self.answer.take(), &self.node, self.reservation.take())
        else {
            return;
        };
        let (node, claim) = (Arc::clone(node), self.claim.take());
        reservation.leave();
        let unjudged = permit.map(|permit| (permit, self.due));
        let late = LateAnswer { answer, unjudged, node, connection, claim, reservation };
        match self.operation {
            Operation::Take => {
                let charge = std::mem::take(&mut self.charge);
                settle::give_back_later(&self.shared, late, charge);
            }
            Operation::Peek | Operation::Reset => settle::wait_out(&self.shared, late),
        }
    }
}

impl Drop for TimedCall {
    fn drop(&mut self) {
        // Its caller has gone before the deadline. That says nothing about the server, but the time until its answer does.
        let permit = self.permit.take();
        self.leave(permit);
    }
}

fn enter(shared: &Shared, node: &Arc<Node>) -> Result<Permit, Failure> {
    node.enter().ok_or_else(|| {
        shared.route.look();
        Failure::new(FailureKind::BreakerOpen)
    })
}
