//! One script, asked of the server that has its rows.

use std::sync::Arc;
use std::time::Duration;

use redis::{Arg, Cmd, RedisError, RedisResult, ServerErrorKind, Value};

use crate::failure::{Failure, FailureKind};
use crate::node::{Connection, Node};
use crate::route::Route;
use crate::script::{Call, Script};
use crate::shared::Shared;
use crate::together::{self, Many, Part};

/// A script to be asked, and where.
pub(crate) struct Question {
    shared: Arc<Shared>,
    pub(crate) slot: u16,
    script: &'static Script,
    what: What,
}

enum What {
    /// It may go together with others.
    Part(Part),
    /// By the script's name, as most servers know it.
    Command(Cmd),
}

/// How often a question is sent elsewhere, or again, before it is given up.
const HOPS: u32 = 16;

/// How long rows on their way get to arrive, before they are asked for again.
const MOVING: Duration = Duration::from_millis(2);

/// What a server says when it does not answer.
enum No {
    Failed(Failure),
    /// Another has the slot: for good, or this once.
    Elsewhere {
        host: String,
        port: u16,
        for_good: bool,
    },
    /// The rows are on their way, some here and some there.
    NotYet,
}

impl Question {
    pub(crate) fn new(shared: &Arc<Shared>, slot: u16, call: &Call<'_>) -> Self {
        // In a cluster, those of one slot are too few.
        let part = match shared.route {
            Route::One(_) => Part::of(call),
            Route::Cluster(_) => None,
        };
        let command = || command(call.script(), call.keys(), call.args());
        let what = part.map_or_else(|| What::Command(command()), What::Part);
        Self { shared: Arc::clone(shared), slot, script: call.script(), what }
    }

    /// The answer of `node`, or of whom it names instead.
    pub(crate) async fn ask(
        &self,
        node: Arc<Node>,
        connection: Connection,
    ) -> Result<Vec<u8>, Failure> {
        match &self.what {
            What::Part(part) => together::ask(self, part, node, connection).await,
            What::Command(command) => self.ask_alone(command, node, connection).await,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) async fn ask_alone(
        &self,
        command: &Cmd,
        mut node: Arc<Node>,
        mut connection: Connection,
    ) -> Result<Vec<u8>, Failure> {
        let mut asking = false;
        for _ in 0..HOPS {
            let no = match self.evaluate(command, &node, connection, asking).await {
                Ok(answer) => return Ok(answer),
                Err(no) => no,
            };
            match (no, &self.shared.route) {
                (No::Failed(failure), _) => return Err(failure),
                (_, Route::One(_)) => return Err(not_alone()),
                (No::NotYet, Route::Cluster(_)) => self.shared.runtime.timer(MOVING).await,
                (No::Elsewhere { host, port, for_good }, Route::Cluster(cluster)) => {
                    // What another answers is not remembered as this one's word.
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
        Err(Failure::because(FailureKind::Cluster, "it is sent from node to node"))
    }

    async fn evaluate(
        &self,
        command: &Cmd,
        node: &Arc<Node>,
        mut connection: Connection,
        asking: bool,
    ) -> Result<Vec<u8>, No> {
        let mut answer = send(&mut connection, command, asking).await;
        if is_unknown(&answer) {
            self.shared.counters.script_loaded();
            answer = send(&mut connection, &self.in_full(command), asking).await;
        }
        answer.and_then(packed).map_err(|error| No::from(node, connection.generation, &error))
    }

    /// The same with the script itself, which the server then knows.
    fn in_full(&self, command: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(self.script.source());
        for argument in command.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                full.arg(bytes);
            }
        }
        full
    }
}

/// A script, by its name.
pub(crate) fn command<'a>(
    script: &Script,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    args: &[u8],
) -> Cmd {
    let count = keys.clone().count();
    let bytes = script.sha().len() + keys.clone().map(<[u8]>::len).sum::<usize>() + args.len();
    let mut command = Cmd::with_capacity(count + 4, bytes + 16);
    command.arg("EVALSHA").arg(script.sha()).arg(count);
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(args);
    command
}

async fn send(connection: &mut Connection, command: &Cmd, asking: bool) -> RedisResult<Value> {
    let wire = &mut connection.wire;
    let answer = if asking {
        // In one piece: on a connection of many nobody else must come in between.
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(command.clone());
        wire.send_packed_commands(&both, 0, 2).await?.pop().unwrap_or_default()
    } else {
        wire.send_packed_command(command).await?
    };
    // What is within an array is the answer to one of many.
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
        // Settling answers a number, which says nothing.
        Value::Int(_) => Ok(Vec::new()),
        _ => Err(RedisError::from((redis::ErrorKind::UnexpectedReturnType, "not a packed answer"))),
    }
}

impl No {
    /// After this, the connection may be another one.
    fn from(node: &Arc<Node>, generation: u64, error: &RedisError) -> Self {
        let no = Self::of(error);
        if let Self::Failed(failure) = &no {
            if failure.kind().asks_for_another_connection() {
                node.lose(generation, failure);
            }
        }
        no
    }

    fn of(error: &RedisError) -> Self {
        use redis::ErrorKind::Server;
        let redirected = match error.kind() {
            Server(ServerErrorKind::Moved) => Self::elsewhere(error, true),
            Server(ServerErrorKind::Ask) => Self::elsewhere(error, false),
            Server(ServerErrorKind::TryAgain) => Some(Self::NotYet),
            _ => None,
        };
        redirected.unwrap_or_else(|| Self::Failed(Failure::from(error).after_sending()))
    }

    fn elsewhere(error: &RedisError, for_good: bool) -> Option<Self> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']).to_owned();
        Some(Self::Elsewhere { host, port: port.parse().ok()?, for_good })
    }
}

/// Asks for many at once, all in one script: an answer for each, or one failure for all.
pub(crate) async fn ask_many(
    shared: &Shared,
    node: &Arc<Node>,
    mut connection: Connection,
    many: &Many,
) -> Result<Vec<Result<Vec<u8>, Failure>>, Failure> {
    let mut answer = send(&mut connection, &many.by_name(), false).await;
    if is_unknown(&answer) {
        shared.counters.script_loaded();
        answer = send(&mut connection, &many.in_full(), false).await;
    }
    let failure = |error: RedisError| match No::from(node, connection.generation, &error) {
        No::Failed(failure) => failure,
        No::Elsewhere { .. } | No::NotYet => not_alone(),
    };
    match answer.map_err(failure)? {
        Value::Array(answers) => {
            Ok(answers.into_iter().map(|answer| packed(answer).map_err(failure)).collect())
        }
        answer => Ok(vec![packed(answer).map_err(failure)]),
    }
}

fn not_alone() -> Failure {
    let detail = "the server is a node of a cluster: make the store with `Redis::cluster`";
    Failure::because(FailureKind::Cluster, detail)
}
