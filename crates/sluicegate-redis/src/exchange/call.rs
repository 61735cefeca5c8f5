//! One call within the deadline: answered in time, or nothing is charged.
//!
//! A call is never repeated on a guess. If a connection breaks between call and answer, repeating the call could charge
//! twice, and giving back could return what was never taken. Charging too much is the safer error: the charge is kept if
//! it was made, and `unanswered` counts it. A call is repeated only if the server said that it did nothing: `NOSCRIPT`,
//! `MOVED`, `ASK`, `TRYAGAIN`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sluicegate_core::adapter::Charge;

use crate::exchange::answer::{LateAnswer, PendingAnswer, read, receipts};
use crate::exchange::background::Reservation;
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::exchange::{heartbeat, settle};
use crate::failure::{Failure, FailureKind};
use crate::places::Claim;
use crate::refusals::Observation;
use crate::runtime::Sleep;
use crate::script::{Operation, Reply};
use crate::wire::breaker::Permit;
use crate::wire::node::{Connection, Node};

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// One call within the deadline.
///
/// If it is dropped before the answer is there, or the deadline passes, a task remains that waits for the answer and
/// gives back what it charged.
pub(crate) struct TimedCall {
    shared: Arc<Shared>,
    operation: Operation,
    charge: Charge,
    deadline: Sleep,
    /// The node that is called, once it is known, and the permit to call it.
    node: Option<(Arc<Node>, Permit)>,
    stage: Stage,
    observation: Observation,
    /// The places that it charges, if any.
    claim: Option<Claim>,
    /// Held until the answer is there, in time or late.
    reservation: Option<Reservation>,
}

enum Stage {
    Locating {
        node: Boxed<Arc<Node>>,
        request: Request,
    },
    Connecting {
        connection: Boxed<Connection>,
        request: Request,
    },
    /// Nothing is sent before the answer is polled.
    Answering {
        answer: PendingAnswer,
        begun: bool,
        connection: Connection,
    },
    Done,
}

impl TimedCall {
    /// Prepares an operation on a charge whose rows, with these `keys`, lie in one `slot`.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        operation: Operation,
        charge: Charge,
        keys: &[Vec<u8>],
        (slot, deadline): (u16, Duration),
    ) -> Result<Box<Self>, Failure> {
        let node = shared.route.known(slot);
        let node = node.map(|node| enter(shared, node)).transpose()?;
        let reservation = shared.background.reserve_call();
        let reservation = Some(reservation.ok_or_else(|| Failure::new(FailureKind::Full))?);
        let mut observation = shared.refusals.observe(operation, &charge);
        let claim = match operation {
            Operation::Take => {
                Claim::charging(&shared.places, &charge, keys, shared.runtime.clock.now())
            }
            Operation::Peek | Operation::Reset => None,
        };
        if claim.is_some() {
            heartbeat::keep(shared);
        }
        let at = (slot, claim.as_ref());
        let request = Request::of_charge(shared, operation, &charge, keys, at);
        let stage = match &node {
            Some((node, _)) => Stage::connect(node, request, &mut observation),
            None => {
                let node = Box::pin(shared.route.clone().node(slot));
                Stage::Locating { node, request }
            }
        };
        let deadline = shared.runtime.sleep(deadline);
        let shared = Arc::clone(shared);
        // In a box at once: it is large, and moved several times.
        Ok(Box::new(Self {
            shared,
            operation,
            charge,
            deadline,
            node,
            stage,
            observation,
            claim,
            reservation,
        }))
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, Failure>> {
        // Most polls end here, without a stage that is moved.
        if let Stage::Answering { answer, begun, .. } = &mut self.stage {
            *begun = true;
            let answer = ready!(answer.as_mut().poll(cx));
            self.stage = Stage::Done;
            return Poll::Ready(answer);
        }
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            self.stage = match stage {
                Stage::Locating { mut node, request } => match node.as_mut().poll(cx)? {
                    Poll::Pending => return self.stay(Stage::Locating { node, request }),
                    Poll::Ready(node) => {
                        let (node, permit) = enter(&self.shared, node)?;
                        let next = Stage::connect(&node, request, &mut self.observation);
                        self.node = Some((node, permit));
                        next
                    }
                },
                Stage::Connecting { mut connection, request } => {
                    match connection.as_mut().poll(cx)? {
                        Poll::Pending => {
                            return self.stay(Stage::Connecting { connection, request });
                        }
                        Poll::Ready(connection) => {
                            let (node, _) = self.node.as_ref().expect("the node is known");
                            Stage::answering(node, connection, request, &mut self.observation)
                        }
                    }
                }
                Stage::Answering { mut answer, connection, .. } => match answer.as_mut().poll(cx) {
                    Poll::Pending => {
                        return self.stay(Stage::Answering { answer, begun: true, connection });
                    }
                    Poll::Ready(answer) => return Poll::Ready(answer),
                },
                Stage::Done => panic!("a future is not polled again once it is ready"),
            };
        }
    }

    fn stay<T>(&mut self, stage: Stage) -> Poll<T> {
        self.stage = stage;
        Poll::Pending
    }

    fn too_late(&mut self) -> Failure {
        let failure = match self.stage {
            Stage::Answering { .. } => Failure::new(FailureKind::TooSlow),
            _ => Failure::because(FailureKind::Unreachable, "no connection within the deadline"),
        };
        self.leave();
        failure
    }

    fn learn(&mut self, outcome: Result<(), &Failure>) {
        if let Some((node, permit)) = &mut self.node {
            node.learn(permit, outcome);
        }
        if outcome.is_err_and(|failure| failure.kind() != FailureKind::WrongType) {
            self.shared.route.look();
        }
    }

    /// Replaces the connection: after an answer that cannot be read, no other answer on it can be trusted.
    fn distrust(&mut self, malformed: &Failure) {
        let Some((node, permit)) = &mut self.node else { return };
        let failure = Failure::because(FailureKind::Protocol, malformed.to_string());
        node.learn(permit, Err(&failure));
        if let Some(current) = node.current() {
            node.lose(current.generation, &failure);
        }
    }

    /// Leaves a task behind that gives back what may be charged.
    fn leave(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let Stage::Answering { answer, begun: true, connection } = stage else { return };
        if let (Some((node, _)), Some(reservation)) = (&self.node, self.reservation.take()) {
            let (node, claim) = (Arc::clone(node), self.claim.take());
            let reservation = reservation.in_background();
            let late = LateAnswer { answer, node, connection, claim, reservation };
            match self.operation {
                Operation::Take => {
                    let charge = std::mem::take(&mut self.charge);
                    settle::give_back_later(&self.shared, late, charge);
                }
                Operation::Peek | Operation::Reset => settle::wait_out(&self.shared, late),
            }
        }
    }
}

impl Stage {
    fn connect(node: &Arc<Node>, request: Request, observation: &mut Observation) -> Self {
        match node.current() {
            Some(connection) => Self::answering(node, connection, request, observation),
            None => {
                let connection = Box::pin(Arc::clone(node).connection());
                Self::Connecting { connection, request }
            }
        }
    }

    fn answering(
        node: &Arc<Node>,
        connection: Connection,
        request: Request,
        observation: &mut Observation,
    ) -> Self {
        observation.sent(connection.epoch);
        let (node, on) = (Arc::clone(node), connection.clone());
        let answer = Box::pin(async move { request.send_once(node, on).await });
        Self::Answering { answer, begun: false, connection }
    }
}

fn enter(shared: &Shared, node: Arc<Node>) -> Result<(Arc<Node>, Permit), Failure> {
    match node.enter() {
        Some(permit) => Ok((node, permit)),
        None => {
            shared.route.look();
            Err(Failure::new(FailureKind::BreakerOpen))
        }
    }
}

impl Future for TimedCall {
    type Output = Result<Reply, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        let answer = match call.poll_answer(cx) {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                ready!(Pin::new(&mut call.deadline).poll(cx));
                Err(call.too_late())
            }
        };
        let may_be_applied = answer.as_ref().map_or_else(Failure::may_be_applied, |_| true);
        let is_answered = answer.is_ok();
        let reply = answer.and_then(|answer| read(&call.charge, &answer));
        match &reply {
            Err(malformed) if is_answered => call.distrust(malformed),
            outcome => call.learn(outcome.as_ref().map(drop)),
        }
        if call.operation == Operation::Take && may_be_applied && reply.is_err() {
            call.shared.counters.unanswered();
        }
        match (&mut call.claim, &reply) {
            (Some(claim), Ok(reply)) if reply.verdict.is_admitted() => {
                claim.admitted(&receipts(reply));
            }
            (Some(claim), Err(_)) if may_be_applied => claim.doubt(),
            _ => {}
        }
        call.reservation = None;
        // The claim counts places until here. Those that were charged are kept.
        call.claim = None;
        call.observation.learn(&call.charge, reply.as_ref().ok());
        Poll::Ready(reply)
    }
}

impl Drop for TimedCall {
    fn drop(&mut self) {
        self.leave();
    }
}
