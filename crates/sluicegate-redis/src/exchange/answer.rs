use std::pin::Pin;
use std::sync::Arc;

use sluicegate_core::adapter::{Charge, Receipt, remote};

use crate::exchange::background::Reservation;
use crate::failure::{Failure, FailureKind};
use crate::places::Claim;
use crate::script::Reply;
use crate::wire::node::{Connection, Node};

/// An answer that is on its way.
pub(super) type PendingAnswer = Pin<Box<dyn Future<Output = Result<Vec<u8>, Failure>> + Send>>;

/// An answer that no caller waits for any more, and the connection that it will come on.
pub(super) struct LateAnswer {
    pub(super) answer: PendingAnswer,
    pub(super) node: Arc<Node>,
    pub(super) connection: Connection,
    /// The places that the call charges, if any.
    pub(super) claim: Option<Claim>,
    pub(super) reservation: Reservation,
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
