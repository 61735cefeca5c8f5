//! Sends calls to one server together in one script.
//!
//! Most of the cost of a script is paid once per run: the command, the clock, entering and leaving Lua. So calls that
//! are made while others are on their way share one run. Each is decided by itself, after the one before it, and has an
//! answer of its own.
//!
//! While one call is on its way to a single server, plain requests that come meanwhile are gathered and go
//! in one call of `spend.lua`: half of the requests without an answer, from 8 to 64. All in one call would
//! be quicker for the server, but the server would stand still while the process makes the next call ready,
//! and the other way round. They go limit by limit and key by key: a limit is sent once, and the script
//! reads all rows by one `MGET` and writes each once. `MGET` says nothing of a key of another type, so a
//! row that it does not find is looked at again by `GET`, whose error belongs to that row alone. A request
//! that finds no call under way is sent at once.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::exchange::evaluate::{Evaluation, evaluate_batch};
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::script::batch::{CallBatch, SingleCall};
use crate::wire::node::queue::{Answer, Joined, QueuedCall};
use crate::wire::node::{Connection, Node};

/// Sends a call together with others that are made at the same time, if there are any.
pub(super) async fn send(
    shared: &Arc<Shared>,
    slot: u16,
    call: SingleCall,
    node: Arc<Node>,
    connection: Connection,
) -> Answer {
    let _unanswered = node.queue.begin_call();
    if let Some(_script) = node.queue.begin_script_alone() {
        let (script, command) = (call.script(), call.command());
        let evaluation = Evaluation { shared, slot, script, command: &command };
        // In a box, so that the future of a batched call stays small.
        return Box::pin(evaluation.run(Arc::clone(&node), connection)).await;
    }
    let (answer, answered) = oneshot::channel();
    if let Some(joined) = node.queue.join(QueuedCall { call, answer }) {
        let (on, node) = (Arc::clone(shared), Arc::clone(&node));
        shared.runtime.spawn(async move {
            let batch = match joined {
                Joined::Full(batch) => batch,
                Joined::First => {
                    // Other tasks that are ready run first, and may join.
                    yield_now().await;
                    node.queue.take()
                }
            };
            send_all(&on, &node, connection, batch).await;
        });
    }
    let gone = || Failure::because(FailureKind::Unreachable, "the runtime ends").after_sending();
    answered.await.unwrap_or_else(|_| Err(gone()))
}

async fn send_all(
    shared: &Shared,
    node: &Arc<Node>,
    connection: Connection,
    mut waiting: Vec<QueuedCall>,
) {
    node.queue.observe(waiting.len());
    while let Some(first) = waiting.first() {
        let clock = first.call.clock().to_vec();
        // Only tests, which turn the clock meanwhile, have more than one clock in a batch.
        let (batch, others) = waiting.into_iter().partition(|queued| queued.call.clock() == clock);
        waiting = others;
        let _script = node.queue.begin_script();
        // The connection may have been replaced.
        let connection = node.current().unwrap_or_else(|| connection.clone());
        send_batch(shared, node, connection, batch).await;
    }
}

async fn send_batch(
    shared: &Shared,
    node: &Arc<Node>,
    connection: Connection,
    mut batch: Vec<QueuedCall>,
) {
    batch.sort_by(|one, other| one.call.order().cmp(&other.call.order()));
    let (calls, callers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|queued| (queued.call, queued.answer)).unzip();
    let expected = calls.len();
    let answers = match evaluate_batch(shared, node, connection, &CallBatch(calls)).await {
        Ok(answers) if answers.len() == expected => answers,
        Ok(answers) => {
            let detail = format!("{} answers to {expected} calls", answers.len());
            vec![Err(Failure::because(FailureKind::Script, detail)); expected]
        }
        Err(failure) => vec![Err(failure); expected],
    };
    for (caller, answer) in callers.into_iter().zip(answers) {
        // A caller that has gone needs no answer.
        let _ = caller.send(answer);
    }
}
