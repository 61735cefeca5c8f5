//! Runs scripts on a server: by hash, in full if the server does not know the script, and on another node if the server
//! redirects.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, RedisResult, ServerErrorKind, Value};

use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::script::batch::CallBatch;
use crate::script::command::in_full;
use crate::script::{Script, settling};
use crate::wire::node::{Connection, Node};
use crate::wire::route::Route;

/// How often a command is redirected or repeated before it fails.
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
        let mut asking = false;
        connection = node.open_connection(connection).await?;
        for _ in 0..MAX_HOPS {
            let rejection = match self.evaluate(&node, connection, asking).await {
                Ok(answer) => return Ok(answer),
                Err(rejection) => rejection,
            };
            match (rejection, &self.shared.route) {
                (Rejection::Failed(failure), _) => return Err(failure),
                (_, Route::One(_)) => return Err(is_in_a_cluster()),
                (Rejection::TryAgain, Route::Cluster(_)) => {
                    self.shared.runtime.timer(MOVING).await;
                }
                (Rejection::Redirected { host, port, for_good }, Route::Cluster(cluster)) => {
                    // The answer of another node is not remembered as an answer of this one.
                    node.forget();
                    node = cluster.node_at(&host, port, &node);
                    asking = !for_good;
                    if for_good {
                        cluster.moved(self.slot, &node);
                    }
                }
            }
            connection = Arc::clone(&node).connection().await?;
        }
        let detail = format!("redirected more than {MAX_HOPS} times");
        Err(Failure::because(FailureKind::Cluster, detail))
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
            self.shared.counters.script_loaded();
            answer = send(&connection, &in_full(self.script, self.command), asking).await;
        }
        answer
            .and_then(packed)
            .map_err(|error| Rejection::after(node, connection.generation, &error))
    }
}

async fn send(connection: &Connection, command: &Cmd, asking: bool) -> RedisResult<Value> {
    let mut wire = connection.wire();
    let answer = if asking {
        // As one pipeline, so that no other command on the connection comes in between.
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(command.clone());
        wire.send_packed_commands(&both, 0, 2).await?.pop().unwrap_or_default()
    } else {
        wire.send_packed_command(command).await?
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
        shared.counters.script_loaded();
        answer = send(&connection, &batch.in_full(), false).await;
    }
    let failure = |error: RedisError| match Rejection::after(node, connection.generation, &error) {
        Rejection::Failed(failure) => failure,
        Rejection::Redirected { .. } | Rejection::TryAgain => is_in_a_cluster(),
    };
    match answer.map_err(failure)? {
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
