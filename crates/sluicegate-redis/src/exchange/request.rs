use std::sync::Arc;

use redis::Cmd;
use sluicegate_core::adapter::Charge;

use crate::exchange::evaluate::{Evaluation, send_together};
use crate::exchange::shared::Shared;
use crate::failure::Failure;
use crate::places::Claim;
use crate::script::{Call, Operation, Row, Script, SingleCall, by_hash};
use crate::wire::node::{Connection, Node};
use crate::wire::route::Route;

/// A call, ready to be sent to the server that has its rows.
pub(crate) struct Request {
    shared: Arc<Shared>,
    pub(crate) slot: u16,
    script: &'static Script,
    payload: Payload,
}

enum Payload {
    /// It may be sent together with others.
    Batchable(SingleCall),
    Alone(Cmd),
}

impl Request {
    pub(crate) fn new(shared: &Arc<Shared>, slot: u16, call: Call<'_>) -> Self {
        // In a cluster, too few calls of one slot come at the same time.
        let is_batchable = matches!(shared.route, Route::One(_)) && call.can_be_batched();
        let script = call.script();
        let payload = match is_batchable {
            true => Payload::Batchable(SingleCall::of(call)),
            false => Payload::Alone(by_hash(script, call.keys(), call.args())),
        };
        Self { shared: Arc::clone(shared), slot, script, payload }
    }

    /// An operation on `charge`, whose rows have these `keys`.
    pub(crate) fn of_charge(
        shared: &Arc<Shared>,
        operation: Operation,
        charge: &Charge,
        keys: &[Vec<u8>],
        (slot, claim): (u16, Option<&Claim>),
    ) -> Self {
        let caller = shared.caller(claim);
        let of_rows = |rows: &[Row<'_>]| {
            let call = Call::of(operation, rows, charge.patience(), charge.keys(), caller);
            Self::new(shared, slot, call)
        };
        let mut rows = charge.debits().zip(keys).map(|(debit, key)| Row { key, debit });
        match (keys, rows.next()) {
            // Most charges have one row, which needs no allocation.
            ([_], Some(row)) => of_rows(&[row]),
            (_, first) => of_rows(&first.into_iter().chain(rows).collect::<Vec<_>>()),
        }
    }

    /// Sends it to `node`, and follows redirections.
    pub(crate) async fn send(
        &self,
        node: Arc<Node>,
        connection: Connection,
    ) -> Result<Vec<u8>, Failure> {
        let shared = &self.shared;
        match &self.payload {
            Payload::Batchable(call) => {
                send_together(shared, self.slot, call.clone(), node, connection).await
            }
            Payload::Alone(command) => {
                let (slot, script) = (self.slot, self.script);
                Evaluation { shared, slot, script, command }.run(node, connection).await
            }
        }
    }

    /// Like [`send`](Self::send), for a request that is sent once.
    pub(crate) async fn send_once(
        self,
        node: Arc<Node>,
        connection: Connection,
    ) -> Result<Vec<u8>, Failure> {
        match self.payload {
            Payload::Batchable(call) => {
                send_together(&self.shared, self.slot, call, node, connection).await
            }
            // In a box, so that the future of a batched call stays small.
            Payload::Alone(_) => Box::pin(self.send(node, connection)).await,
        }
    }
}
