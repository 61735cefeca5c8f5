//! Runs scripts on a server: by hash, in full if the server does not know the script, and on another node if the server
//! redirects. Calls that are made at the same time are sent together, in one run of the script.
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
use std::time::Duration;

use redis::{Cmd, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::script::{CallBatch, Script, SingleCall, in_full, settling};
use crate::wire::node::queue::{Answer, QueuePosition, QueuedCall};
use crate::wire::node::{Connection, Node};
use crate::wire::route::Route;

/// How often a command is redirected before it fails.
const MAX_HOPS: u32 = 16;

/// The pause before a command is repeated whose rows are moving to another node.
const MOVING: Duration = Duration::from_millis(2);

/// One command that runs a script.
pub(super) struct Evaluation<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) slot: u16,
    pub(super) script: &'static Script,
    /// The script by its hash.
    pub(super) command: &'a Cmd,
}

/// Why a server did not answer.
enum Rejection {
    Failed(Failure),
    /// `MOVED` or `ASK`: another node has the slot, for good or for this command.
    Redirected {
        host: String,
        port: u16,
        for_good: bool,
    },
    /// Some rows of the slot are here and some on another node.
    TryAgain,
}

impl Evaluation<'_> {
    pub(super) async fn run(
        &self,
        mut node: Arc<Node>,
        mut connection: Connection,
    ) -> Result<Vec<u8>, Failure> {
        let (mut asking, mut hops) = (false, 0);
        // A command whose rows are moving is repeated for three quarters of the deadline. Its caller still hears why it
        // fails, and no deadline passes, which would count against the whole node.
        let clock = &self.shared.runtime.clock;
        let patience = self.shared.deadline.as_micros() / 4 * 3;
        let over = clock.now().saturating_add(u64::try_from(patience).unwrap_or(u64::MAX));
        connection = node.open_connection(connection).await?;
        loop {
            let rejection = match self.evaluate(&node, connection, asking).await {
                Ok(answer) => return Ok(answer),
                Err(rejection) => rejection,
            };
            match (rejection, &self.shared.route) {
                (Rejection::Failed(failure), _) => return Err(failure),
                (_, Route::One(_)) => return Err(is_in_a_cluster()),
                (Rejection::TryAgain, Route::Cluster(_)) => {
                    if clock.now() >= over {
                        let detail = "the rows are still moving to another node";
                        return Err(Failure::because(FailureKind::Cluster, detail));
                    }
                    self.shared.runtime.timer(MOVING).await;
                }
                (Rejection::Redirected { host, port, for_good }, Route::Cluster(cluster)) => {
                    // The answer of another node is not remembered as an answer of this one.
                    node.forget();
                    node = cluster.node_at(&host, port, &node);
                    // `ASK` is for this command alone: the slot is still moving, and its other keys are at the old
                    // node.
                    asking = !for_good;
                    if for_good {
                        cluster.moved(self.slot, &node);
                    }
                    hops += 1;
                    if hops == MAX_HOPS {
                        let detail = format!("redirected {MAX_HOPS} times");
                        return Err(Failure::because(FailureKind::Cluster, detail));
                    }
                }
            }
            // Each of these errors says that nothing was done, so the command may be sent again. Others end the loop.
            connection = Arc::clone(&node).connection().await?;
        }
    }

    async fn evaluate(
        &self,
        node: &Arc<Node>,
        connection: Connection,
        asking: bool,
    ) -> Result<Vec<u8>, Rejection> {
        // A settlement whose script the server did not know would be sent again behind the caller's next question, so
        // the first one on a connection says the script itself.
        let is_first =
            settling(self.script).is_some_and(|which| connection.is_first_settlement(which));
        let mut answer = match is_first {
            true => send(&connection, &in_full(self.script, self.command), asking).await,
            false => send(&connection, self.command, asking).await,
        };
        if is_unknown(&answer) {
            self.shared.counters.each.scripts_loaded.add(1);
            // The server has restarted, or its scripts were flushed. Nothing was charged, so the call is repeated,
            // once.
            answer = send(&connection, &in_full(self.script, self.command), asking).await;
        }
        answer
            .and_then(packed)
            .map_err(|error| Rejection::after(node, connection.generation, &error))
    }
}

async fn send(connection: &Connection, command: &Cmd, asking: bool) -> RedisResult<Value> {
    let answer = match asking {
        true => connection.send_asking(command).await?,
        false => connection.send(command).await?,
    };
    // Errors within an array are answers to single calls of a batch.
    match answer {
        Value::ServerError(error) => Err(error.into()),
        answer => Ok(answer),
    }
}

fn is_unknown(answer: &RedisResult<Value>) -> bool {
    matches!(answer, Err(error) if error.kind() == ServerErrorKind::NoScript.into())
}

fn packed(answer: Value) -> RedisResult<Vec<u8>> {
    match answer.extract_error()? {
        Value::BulkString(bytes) => Ok(bytes),
        // Settlements answer a number without a meaning.
        Value::Int(_) => Ok(Vec::new()),
        _ => Err(RedisError::from((redis::ErrorKind::UnexpectedReturnType, "not a packed answer"))),
    }
}

impl Rejection {
    /// Replaces the connection if another one may do better.
    fn after(node: &Arc<Node>, generation: u64, error: &RedisError) -> Self {
        match Self::of(error) {
            Self::Failed(failure) if failure.kind().asks_for_another_connection() => {
                let failure = failure.of_connection(generation);
                node.lose(generation, &failure);
                Self::Failed(failure)
            }
            rejection => rejection,
        }
    }

    fn of(error: &RedisError) -> Self {
        use redis::ErrorKind::Server;
        let redirected = match error.kind() {
            Server(ServerErrorKind::Moved) => Self::redirected(error, true),
            Server(ServerErrorKind::Ask) => Self::redirected(error, false),
            Server(ServerErrorKind::TryAgain) => Some(Self::TryAgain),
            _ => None,
        };
        redirected.unwrap_or_else(|| Self::Failed(Failure::from(error).after_sending()))
    }

    fn redirected(error: &RedisError, for_good: bool) -> Option<Self> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']).to_owned();
        Some(Self::Redirected { host, port: port.parse().ok()?, for_good })
    }
}

/// Runs a batch: an answer for each call, or one failure for all.
pub(super) async fn evaluate_batch(
    shared: &Shared,
    node: &Arc<Node>,
    connection: Connection,
    batch: &CallBatch,
) -> Result<Vec<Result<Vec<u8>, Failure>>, Failure> {
    let connection = node.open_connection(connection).await?;
    let mut answer = send(&connection, &batch.by_hash(), false).await;
    if is_unknown(&answer) {
        shared.counters.each.scripts_loaded.add(1);
        answer = send(&connection, &batch.in_full(), false).await;
    }
    let failure = |error: RedisError| match Rejection::after(node, connection.generation, &error) {
        Rejection::Failed(failure) => failure,
        Rejection::Redirected { .. } | Rejection::TryAgain => is_in_a_cluster(),
    };
    match answer.map_err(failure)? {
        // A batch of one is sent like a single call and answered without an array.
        Value::Array(answers) => {
            Ok(answers.into_iter().map(|answer| packed(answer).map_err(failure)).collect())
        }
        answer => Ok(vec![packed(answer).map_err(failure)]),
    }
}

fn is_in_a_cluster() -> Failure {
    let detail = "the server is a node of a cluster: make the store with `Redis::cluster`";
    Failure::because(FailureKind::Cluster, detail)
}

/// Sends a call together with others that are made at the same time, if there are any.
pub(super) async fn send_together(
    shared: &Arc<Shared>,
    slot: u16,
    call: SingleCall,
    node: Arc<Node>,
    connection: Connection,
) -> Answer {
    // Counted from here to the answer, also if this future is dropped: the size of batches follows it.
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
        // A task of its own: the caller may be dropped, and the calls that have joined it must be sent all the same.
        shared.runtime.spawn(async move {
            let batch = match joined {
                QueuePosition::Full(batch) => batch,
                QueuePosition::First => {
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
    mut batch: Vec<QueuedCall>,
) {
    node.queue.observe(batch.len());
    if batch.is_empty() {
        // Another caller has found it full, and has sent it.
        return;
    }
    // While it counts, calls that come gather in the queue instead of going alone.
    let _script = node.queue.begin_script();
    // The connection may have been replaced.
    let connection = node.current().unwrap_or(connection);
    // The script reads each row once, and so wants equal keys side by side.
    batch.sort_by(|one, other| one.call.order().cmp(&other.call.order()));
    let (calls, callers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|queued| (queued.call, queued.answer)).unzip();
    // Sorted before they are divided, so that each answer meets the caller of its own call.
    let expected = calls.len();
    let answers = match evaluate_batch(shared, node, connection, &CallBatch(calls)).await {
        Ok(answers) if answers.len() == expected => answers,
        Ok(answers) => {
            let detail = format!("{} answers to {expected} calls", answers.len());
            // It is unknown which answer is whose. To hand any of them out could admit a request that was refused.
            vec![Err(Failure::because(FailureKind::Script, detail)); expected]
        }
        Err(failure) => vec![Err(failure); expected],
    };
    for (caller, answer) in callers.into_iter().zip(answers) {
        // A caller that has gone needs no answer.
        let _ = caller.send(answer);
    }
}
