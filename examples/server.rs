//! The Redis server of the examples that share limits.

use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use sluicegate::{Limit, Limiter};
use sluicegate_redis::{self as redis, FailureKind, Redis};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Failure;

/// The programs to look for. The last is where `cargo xtask test` puts one.
const PROGRAMS: [&str; 3] = [
    "redis-server",
    "valkey-server",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/bin/redis-server"),
];

/// How long a server may take to answer, or to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program beside a shell that ends it when its input is closed: when the process that started them has
/// ended, even if it was killed. The shell prints the id of the program first.
const KEEPER: &str = r#"
    trap '' INT TERM HUP PIPE
    command -v "$1" >/dev/null || exit
    "$@" &
    echo "$!"
    exec >/dev/null 2>&1
    while read -r _; do :; done
    kill -s KILL "$!"; wait
"#;

/// A Redis server that was there, or one that was started, and that ends when this is dropped or this process
/// ends.
#[derive(Debug)]
pub struct RedisServer {
    url: String,
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    id: u32,
    port: u16,
    /// Its input, which is closed with it.
    _keeper: Child,
}

impl RedisServer {
    /// The server at `$REDIS_URL` or at 127.0.0.1:6379. If there is none, starts one on a free port.
    ///
    /// # Errors
    ///
    /// If a server is there but does not work, or if there is none and none can be started. The error says how to
    /// get one.
    pub async fn find_or_start() -> Result<Self, Failure> {
        let url = std::env::var("REDIS_URL").unwrap_or("redis://127.0.0.1:6379".to_owned());
        if is_there(&url).await? {
            return Ok(Self { url, started: None });
        }
        let started = start().await?;
        let port = started.port;
        println!("No Redis is there: one has been started on port {port}.");
        Ok(Self { url: format!("redis://127.0.0.1:{port}"), started: Some(started) })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The id of its process, if it was started here.
    pub fn id(&self) -> Option<u32> {
        self.started.as_ref().map(|started| started.id)
    }
}

/// Looks at a key that nobody uses, which writes nothing.
async fn is_there(url: &str) -> Result<bool, Failure> {
    let store = Redis::builder().url(url).deadline(PATIENCE).build();
    let store = store.map_err(|error| Failure(error.to_string()))?;
    let asked = Limiter::new(Limit::per_second(1)).store(store).peek("anybody there?").await;
    let Err(error) = asked else { return Ok(true) };
    match error.source().and_then(|source| source.downcast_ref()).map(redis::Failure::kind) {
        Some(FailureKind::Unreachable) => Ok(false),
        _ => Err(Failure(error.source().unwrap_or(&error).to_string())),
    }
}

async fn start() -> Result<Started, Failure> {
    let cannot = |error: io::Error| Failure(format!("cannot start redis-server: {error}"));
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(cannot)?.port();
    for program in PROGRAMS {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper", program]);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        // Without persistence.
        command.args(["--save", "", "--appendonly", "no"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().map_err(cannot)?;
        let ready = timeout(PATIENCE, get_ready(&mut keeper)).await;
        let ready = ready.unwrap_or_else(|late| Err(late.into())).map_err(cannot)?;
        if let Some(id) = ready {
            return Ok(Started { id, port, _keeper: keeper });
        }
    }
    Err(Failure(
        "No Redis answers, and none is installed. Get it with `apt-get install redis-server`, with \
         `brew install redis`, or with whatever installs packages here; or name a server by \
         REDIS_URL=redis://…"
            .to_owned(),
    ))
}

/// Waits until it answers. Returns the id of its process, or `None` if there is no such program.
async fn get_ready(keeper: &mut Child) -> io::Result<Option<u32>> {
    let output = keeper.stdout.take().expect("it is a pipe");
    let (mut lines, mut last) = (BufReader::new(output).lines(), String::new());
    let Some(id) = lines.next_line().await? else { return Ok(None) };
    let id = id.parse().map_err(io::Error::other)?;
    while let Some(line) = lines.next_line().await? {
        if line.contains("Ready to accept connections") {
            return Ok(Some(id));
        }
        last = line;
    }
    Err(io::Error::other(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn runs(id: u32) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -0 \"$0\" 2>/dev/null", &id.to_string()]);
        command.status().await.expect("a shell").success()
    }

    #[tokio::test]
    async fn a_server_ends_with_who_started_it() {
        let started = start().await.expect("redis-server is installed");
        let id = started.id;
        assert!(runs(id).await);
        drop(started);
        let ended = async { while runs(id).await {} };
        timeout(PATIENCE, ended).await.expect("it ends");
    }
}
