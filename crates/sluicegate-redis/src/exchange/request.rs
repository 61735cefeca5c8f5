use std::sync::Arc;

use redis::Cmd;
use sluicegate_core::adapter::Charge;

use crate::exchange::batch;
use crate::exchange::evaluate::Evaluation;
use crate::exchange::shared::Shared;
use crate::failure::Failure;
use crate::places::Claim;
use crate::script::batch::SingleCall;
use crate::script::command::by_hash;
use crate::script::{Call, Operation, Row, Script};
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
    pub(crate) fn new(shared: &Arc<Shared>, slot: u16, call: &Call<'_>) -> Self {
        // In a cluster, too few calls of one slot come at the same time.
        let single = match shared.route {
            Route::One(_) => SingleCall::of(call),
            Route::Cluster(_) => None,
        };
        let command = || by_hash(call.script(), call.keys(), call.args());
        let payload = single.map_or_else(|| Payload::Alone(command()), Payload::Batchable);
        Self { shared: Arc::clone(shared), slot, script: call.script(), payload }
    }

    /// An operation on `charge`, whose rows have these `keys`.
    pub(crate) fn of_charge(
        shared: &Arc<Shared>,
        operation: Operation,
        charge: &Charge,
        keys: &[Vec<u8>],
        (slot, claim): (u16, Option<&Claim>),
    ) -> Self {
        let rows: Vec<_> =
            charge.debits().zip(keys).map(|(debit, key)| Row { key, debit }).collect();
        let caller = shared.caller(claim);
        let call = Call::of(operation, &rows, charge.patience(), charge.keys(), caller);
        Self::new(shared, slot, &call)
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
                batch::send(shared, self.slot, call, node, connection).await
            }
            Payload::Alone(command) => {
                let (slot, script) = (self.slot, self.script);
                Evaluation { shared, slot, script, command }.run(node, connection).await
            }
        }
    }
}
