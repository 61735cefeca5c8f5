//! Settlements, and charges that are given back because their answer came too late. Both are sent in the background.
//!
//! A settlement is sent before the call that asks for it returns: its task is polled once by hand, which
//! puts the command on the connection. So the next question of the same caller is behind it and is decided
//! after it. Only what is not done by then goes to the background.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use sluicegate_core::adapter::breaker::Permit;
use sluicegate_core::adapter::{Charge, Debit, Receipt, Reservation, remote};

use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::places::Claim;
use crate::runtime::before;
use crate::script::{Call, Reply, Row};
use crate::wire::node::{Connection, Node};

/// Changes the charge that wrote `receipt` to `spent`.
pub(crate) fn settle(shared: &Arc<Shared>, debit: &Debit, receipt: &Receipt, spent: u64) {
    // Settlements have no caller that could slow down, so their number needs a bound of its own.
    settle_within(shared, debit, receipt, spent, || {
        shared.background.settlement().map(CallReservation::Own)
    });
}

/// Changes the charge that wrote `receipt` to `spent`, in the place in the background that `reserve` gives it.
///
/// If there is a connection, the settlement is handed to it before this returns, so that the next decision of the same
/// task is made after it.
pub(super) fn settle_within(
    shared: &Arc<Shared>,
    debit: &Debit,
    receipt: &Receipt,
    spent: u64,
    reserve: impl FnOnce() -> Option<CallReservation>,
) {
    // A void receipt is that of a limit on trial, or of one without room: the server counts nothing for it.
    if spent == debit.cost || receipt.is_void() {
        return;
    }
    // From now until the server has answered: an answer that comes in between may be from before.
    let invalidation = shared.refusals.invalidate(debit);
    // Places count as held until the server has said that they are free. Otherwise a heartbeat in between would
    // tell it a smaller number, and the settlement would then take away places of other requests.
    let held = debit.limit.is_held() && spent < debit.cost;
    let claim =
        held.then(|| Claim::returning(&shared.places, shared.key(debit), debit.cost - spent));
    if shared.runtime.handle().is_none() {
        return shared.counters.settlement_dropped(&no_runtime());
    }
    let Some(reservation) = reserve() else {
        claim.iter().for_each(Claim::doubt);
        let full = Failure::because(FailureKind::TooSlow, "too many settlements are under way");
        return shared.counters.settlement_dropped(&full);
    };
    let request = settlement(shared, debit, receipt, spent);
    let settling = Arc::clone(shared);
    let mut task = Box::pin(async move {
        let delivered = in_time(&settling, deliver(&settling, &request)).await;
        drop(invalidation);
        match delivered {
            Ok(()) => settling.counters.each.settled.add(1),
            Err(failure) => {
                claim.iter().for_each(Claim::doubt);
                settling.counters.settlement_dropped(&failure);
            }
        }
        drop(claim);
        drop(reservation);
    });
    // Polled once here, with a waker that does nothing: a spawned task is polled again by its runtime anyway.
    if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        shared.runtime.spawn(task);
    }
}

/// Nothing can be sent without a runtime.
pub(crate) fn no_runtime() -> Failure {
    let detail = "make the store, or use it for the first time, inside a tokio runtime";
    Failure::because(FailureKind::Unreachable, detail)
}

/// Waits in the background for a late answer, and gives back what it charged.
pub(super) fn give_back_later(shared: &Arc<Shared>, late: LateAnswer, charge: Charge) {
    // `answer` is the same future that the caller awaited. A second question would be a second charge.
    let shared = Arc::clone(shared);
    let over = shared.runtime.sleep(shared.grace);
    shared.clone().runtime.spawn(async move {
        let mut late = late;
        let answer = before(over, late.answer(&shared)).await;
        let LateAnswer { node, connection, claim, reservation, .. } = late;
        match answer {
            Some(Ok(answer)) => {
                if !give_back(&shared, &charge, &answer, (node, connection)).await {
                    claim.iter().for_each(Claim::doubt);
                }
            }
            // The server did nothing, so there is nothing to give back.
            Some(Err(failure)) if !failure.may_be_applied() => {}
            _ => {
                claim.iter().for_each(Claim::doubt);
                shared.counters.each.unanswered.add(1);
            }
        }
        drop(claim);
        drop(reservation);
    });
}

/// Waits in the background for a late answer that charges nothing, so that its reservation counts until it is there.
pub(super) fn wait_out(shared: &Arc<Shared>, mut late: LateAnswer) {
    let shared = Arc::clone(shared);
    let over = shared.runtime.sleep(shared.grace);
    shared.clone().runtime.spawn(async move {
        let _ = before(over, late.answer(&shared)).await;
        drop(late);
    });
}

/// Gives back what an answer charged, on the connection that it came on: the server answers there, and another
/// connection may not be made yet. Returns whether the server counts nothing of the charge any more.
async fn give_back(
    shared: &Arc<Shared>,
    charge: &Charge,
    answer: &[u8],
    (node, connection): (Arc<Node>, Connection),
) -> bool {
    let Ok(reply) = read(charge, answer) else {
        shared.counters.each.unanswered.add(1);
        return false;
    };
    if !reply.verdict.is_admitted() {
        return true;
    }
    let charged = charge.debits().zip(receipts(&reply)).filter(|(_, receipt)| !receipt.is_void());
    let mut is_given_back = true;
    let clock = &shared.runtime.clock;
    let until = clock.now().saturating_add(shared.grace.as_micros() as u64);
    // Each of them, although one fails: that may concern its row alone. All together take no longer than one of them may.
    for (debit, receipt) in charged {
        // Until it is delivered, another call may still be refused because of this charge. That must not be remembered.
        let _invalidation = shared.refusals.invalidate(debit);
        let request = settlement(shared, debit, &receipt, 0);
        let delivery = async {
            match request.send(Arc::clone(&node), connection.clone()).await {
                // Sent again only where the first attempt surely did nothing.
                Err(failure) if !failure.may_be_applied() => deliver(shared, &request).await,
                sent => sent.map(drop),
            }
        };
        let left = Duration::from_micros(until.saturating_sub(clock.now()));
        if let Err(failure) = within(shared, left, delivery).await {
            shared.counters.settlement_dropped(&failure);
            is_given_back = false;
        }
    }
    if is_given_back {
        shared.counters.each.given_back.add(1);
    }
    is_given_back
}

fn settlement(shared: &Arc<Shared>, debit: &Debit, receipt: &Receipt, spent: u64) -> Request {
    let key = shared.key(debit);
    let row = Row { key: &key, debit };
    let call = Call::settle(&row, receipt, spent, shared.caller(None));
    Request::new(shared, shared.route.slot(&key), call)
}

/// An answer that is on its way.
pub(super) type PendingAnswer = Pin<Box<dyn Future<Output = Result<Vec<u8>, Failure>> + Send>>;

/// An answer that no caller waits for any more, and the connection that it will come on.
pub(super) struct LateAnswer {
    pub(super) answer: PendingAnswer,
    /// The permit of the call and when its deadline passes, if the caller has gone before that.
    pub(super) unjudged: Option<(Permit, u64)>,
    pub(super) node: Arc<Node>,
    pub(super) connection: Connection,
    /// The places that the call charges, if any.
    pub(super) claim: Option<Claim>,
    pub(super) reservation: CallReservation,
}

/// The place of a call in the background.
pub(super) enum CallReservation {
    Own(Reservation),
    /// That of a charge of which the call is a part.
    Shared(Arc<Reservation>),
}

impl std::ops::Deref for CallReservation {
    type Target = Reservation;

    fn deref(&self) -> &Reservation {
        match self {
            Self::Own(own) => own,
            Self::Shared(shared) => shared,
        }
    }
}

impl LateAnswer {
    /// The answer. The breaker learns whether it comes within the deadline: else it would never open where every caller
    /// gives up before that.
    async fn answer(&mut self, shared: &Shared) -> Result<Vec<u8>, Failure> {
        let Some((mut permit, due)) = self.unjudged.take() else {
            return self.answer.as_mut().await;
        };
        let left = due.saturating_sub(shared.runtime.clock.now());
        let deadline = shared.runtime.sleep(Duration::from_micros(left));
        let in_time = before(deadline, self.answer.as_mut()).await;
        let too_slow = Failure::new(FailureKind::TooSlow);
        let outcome = in_time.as_ref().map_or(Err(&too_slow), |answer| answer.as_ref().map(drop));
        shared.learn(Some((&self.node, &mut permit)), outcome);
        // While it is awaited on, it takes up no place among the calls of a server that has just come back.
        drop(permit);
        match in_time {
            Some(answer) => answer,
            None => self.answer.as_mut().await,
        }
    }
}

/// Reads the answer to a charge.
pub(super) fn read(charge: &Charge, answer: &[u8]) -> Result<Reply, Failure> {
    Reply::parse(charge.debits(), answer)
        .map_err(|malformed| Failure::because(FailureKind::Script, malformed.to_string()))
}

/// The receipts of the charges that a reply reports, in the order of the debits.
pub(super) fn receipts(reply: &Reply) -> Vec<Receipt> {
    remote::outcome(reply.verdict, reply.outcomes.iter().cloned()).receipts().collect()
}

/// Fails a delivery that takes longer than the background allows.
pub(super) async fn in_time(
    shared: &Shared,
    delivery: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    within(shared, shared.grace, delivery).await
}

/// Fails a delivery that takes longer than this.
async fn within(
    shared: &Shared,
    time: Duration,
    delivery: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let delivered = before(shared.runtime.sleep(time), delivery).await;
    delivered.unwrap_or_else(|| Err(Failure::new(FailureKind::TooSlow)))
}

/// Tries again for as long as the request cannot have been applied.
pub(super) async fn deliver(shared: &Shared, request: &Request) -> Result<(), Failure> {
    let mut attempts = 0;
    loop {
        let failure = match deliver_once(shared, request).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        // Sent twice, it would give back twice.
        if failure.may_be_applied() || !is_passing(failure.kind()) {
            return Err(failure);
        }
        attempts += 1;
        shared.runtime.timer(shared.backoff.after(attempts)).await;
    }
}

/// Sends a request once. It needs a permit of the breaker, like any other: while that is open, one request at a time
/// probes the server.
pub(crate) async fn deliver_once(shared: &Shared, request: &Request) -> Result<Vec<u8>, Failure> {
    let node = match shared.route.known(request.slot) {
        Some(node) => node,
        None => shared.route.clone().node(request.slot).await?,
    };
    // Settlements obey the breaker too: after an outage there may be thousands of them, and the server that has
    // just come back would be busy with them alone.
    let mut permit = node.enter().ok_or_else(|| Failure::new(FailureKind::BreakerOpen))?;
    let connection = match node.current() {
        Some(connection) => connection,
        None => Arc::clone(&node).connection().await?,
    };
    let mut answer = pin!(request.send(Arc::clone(&node), connection));
    let in_time = before(shared.runtime.sleep(shared.deadline), answer.as_mut()).await;
    // Whether the server decides in time is judged by decisions alone.
    if permit.is_probe() {
        let too_slow = Failure::new(FailureKind::TooSlow).after_sending();
        let outcome = in_time.as_ref().map_or(Err(&too_slow), |sent| sent.as_ref().map(drop));
        node.learn(&mut permit, outcome);
    }
    // A late answer is still awaited, but it says nothing about the server any more, and takes up no place among the calls
    // of one that has just come back.
    drop(permit);
    let sent = match in_time {
        Some(sent) => sent,
        None => answer.await,
    };
    if sent.is_err() {
        shared.route.look();
    }
    sent
}

/// Whether a failure of this kind may be over in a moment.
const fn is_passing(kind: FailureKind) -> bool {
    !matches!(kind, FailureKind::WrongType | FailureKind::Script | FailureKind::Protocol)
}
