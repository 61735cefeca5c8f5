//! One script asked within the deadline: on time, or nothing is charged.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sluicegate_core::adapter::Charge;

use crate::ask::Question;
use crate::background::Place;
use crate::breaker::Permit;
use crate::failure::{Failure, FailureKind};
use crate::node::{Connection, Node};
use crate::places::{self, Claim};
use crate::refusals::Watch;
use crate::runtime::Sleep;
use crate::script::Reply;
use crate::settle;
use crate::shared::{Ask, Shared};

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// The answer that is yet to come.
pub(crate) type Answer = Boxed<Vec<u8>>;

/// An answer that nobody waits for any more, and on which connection it is to come.
pub(crate) struct Late {
    pub(crate) answer: Answer,
    pub(crate) node: Arc<Node>,
    pub(crate) on: Connection,
    /// The places that are charged, if it charges any.
    pub(crate) claim: Option<Claim>,
    pub(crate) place: Place,
}

/// One script asked within the deadline.
///
/// Dropped before the answer is there, or when the deadline has passed, it leaves a task behind that gives
/// back what the server may have charged by then.
pub(crate) struct Visit {
    shared: Arc<Shared>,
    ask: Ask,
    charge: Charge,
    deadline: Sleep,
    asked: Option<(Arc<Node>, Permit)>,
    stage: Stage,
    watch: Watch,
    /// Places that it asks for.
    claim: Option<Claim>,
    /// Held until there is an answer, whoever waits for it.
    place: Option<Place>,
}

enum Stage {
    Locating {
        node: Boxed<Arc<Node>>,
        question: Question,
    },
    Connecting {
        connection: Boxed<Connection>,
        question: Question,
    },
    /// Nothing is sent before it is polled.
    Asking {
        answer: Answer,
        begun: bool,
        /// What it is asked on.
        on: Connection,
    },
    Done,
}

impl Visit {
    /// Gets ready to ask about a charge whose rows, of these `keys`, lie in one `slot`.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        ask: Ask,
        charge: Charge,
        keys: &[Vec<u8>],
        (slot, deadline): (u16, Duration),
    ) -> Result<Self, Failure> {
        let node = shared.route.known(slot);
        let asked = node.map(|node| enter(shared, node)).transpose()?;
        let place = shared.background.reserve();
        let place = Some(place.ok_or_else(|| Failure::new(FailureKind::Full))?);
        let mut watch = shared.refusals.watch(ask, &charge);
        let claim = match ask {
            Ask::Take => shared.places.claim(&charge, keys, shared.runtime.clock.now()),
            Ask::Peek | Ask::Reset => None,
        };
        if claim.is_some() {
            places::keep(shared);
        }
        let question = shared.question(ask, &charge, keys, (slot, claim.as_ref()));
        let stage = match &asked {
            Some((node, _)) => Stage::connect(node, question, &mut watch),
            None => {
                let node = Box::pin(shared.route.clone().node(slot));
                Stage::Locating { node, question }
            }
        };
        let deadline = shared.runtime.sleep(deadline);
        let shared = Arc::clone(shared);
        Ok(Self { shared, ask, charge, deadline, asked, stage, watch, claim, place })
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, Failure>> {
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            self.stage = match stage {
                Stage::Locating { mut node, question } => match node.as_mut().poll(cx)? {
                    Poll::Pending => return self.stay(Stage::Locating { node, question }),
                    Poll::Ready(node) => {
                        let (node, permit) = enter(&self.shared, node)?;
                        let next = Stage::connect(&node, question, &mut self.watch);
                        self.asked = Some((node, permit));
                        next
                    }
                },
                Stage::Connecting { mut connection, question } => {
                    match connection.as_mut().poll(cx)? {
                        Poll::Pending => {
                            return self.stay(Stage::Connecting { connection, question });
                        }
                        Poll::Ready(connection) => {
                            let (node, _) = self.asked.as_ref().expect("it is known who is asked");
                            Stage::asking(node, connection, question, &mut self.watch)
                        }
                    }
                }
                Stage::Asking { mut answer, on, .. } => match answer.as_mut().poll(cx) {
                    Poll::Pending => return self.stay(Stage::Asking { answer, begun: true, on }),
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
            Stage::Asking { .. } => Failure::new(FailureKind::TooSlow),
            _ => Failure::because(FailureKind::Unreachable, "no connection within the deadline"),
        };
        self.leave();
        failure
    }

    fn learn(&mut self, outcome: Result<(), &Failure>) {
        if let Some((node, permit)) = &mut self.asked {
            node.learn(permit, outcome);
        }
        if outcome.is_err_and(|failure| failure.kind() != FailureKind::WrongType) {
            self.shared.route.look();
        }
    }

    /// What came is not an answer to what was asked: nothing that comes on the same connection can be believed.
    fn distrust(&mut self, malformed: &Failure) {
        let Some((node, permit)) = &mut self.asked else { return };
        let failure = Failure::because(FailureKind::Protocol, malformed.to_string());
        node.learn(permit, Err(&failure));
        if let Some(current) = node.current() {
            node.lose(current.generation, &failure);
        }
    }

    /// Leaves it to the background to give back what may be charged.
    fn leave(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let Stage::Asking { answer, begun: true, on } = stage else { return };
        if let (Some((node, _)), Some(place)) = (&self.asked, self.place.take()) {
            let (node, place, claim) = (Arc::clone(node), place.in_background(), self.claim.take());
            let late = Late { answer, node, on, claim, place };
            match self.ask {
                Ask::Take => {
                    let charge = std::mem::take(&mut self.charge);
                    settle::give_back_later(&self.shared, late, charge);
                }
                Ask::Peek | Ask::Reset => settle::wait_out(&self.shared, late),
            }
        }
    }
}

impl Stage {
    fn connect(node: &Arc<Node>, question: Question, watch: &mut Watch) -> Self {
        match node.current() {
            Some(connection) => Self::asking(node, connection, question, watch),
            None => {
                let connection = Box::pin(Arc::clone(node).connection());
                Self::Connecting { connection, question }
            }
        }
    }

    fn asking(
        node: &Arc<Node>,
        connection: Connection,
        question: Question,
        watch: &mut Watch,
    ) -> Self {
        watch.ask(connection.seen);
        let (node, on) = (Arc::clone(node), connection.clone());
        let answer = Box::pin(async move { question.ask(node, connection).await });
        Self::Asking { answer, begun: false, on }
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

impl Future for Visit {
    type Output = Result<Reply, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let visit = self.get_mut();
        let answer = match visit.poll_answer(cx) {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                ready!(Pin::new(&mut visit.deadline).poll(cx));
                Err(visit.too_late())
            }
        };
        let may_be_applied = answer.as_ref().map_or_else(Failure::may_be_applied, |_| true);
        let is_told = answer.is_ok();
        let reply = answer.and_then(|answer| read(&visit.charge, &answer));
        match &reply {
            Err(malformed) if is_told => visit.distrust(malformed),
            told => visit.learn(told.as_ref().map(drop)),
        }
        if visit.ask == Ask::Take && may_be_applied && reply.is_err() {
            visit.shared.counters.unanswered();
        }
        match (&mut visit.claim, &reply) {
            (Some(claim), Ok(reply)) if reply.verdict.is_admitted() => {
                claim.admitted(&settle::receipts(reply));
            }
            (Some(claim), Err(_)) if may_be_applied => claim.doubt(),
            _ => {}
        }
        visit.place = None;
        // What is not held is not counted any more.
        visit.claim = None;
        visit.watch.learn(&visit.charge, reply.as_ref().ok());
        Poll::Ready(reply)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What the answer to a charge says.
pub(crate) fn read(charge: &Charge, answer: &[u8]) -> Result<Reply, Failure> {
    Reply::parse(charge.debits(), answer)
        .map_err(|malformed| Failure::because(FailureKind::Script, malformed.to_string()))
}
