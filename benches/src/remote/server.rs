use std::fs;
use std::time::Duration;

use redis::Client;
use redis::aio::MultiplexedConnection;
use sluicegate_tests::servers::{Reply, Server};

use crate::wire::Cores;

/// `redis-server` on a port and a core of its own.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    process: String,
}

impl Redis {
    /// Starts it, with redis-cell's module if there is one.
    ///
    /// # Panics
    ///
    /// When there is no `redis-server`, saying how to get it.
    pub fn start(cores: Option<Cores>, module: Option<&str>) -> Self {
        let server = match module {
            Some(module) => Server::start_with(["--loadmodule", module]),
            None => Server::start(),
        };
        let process = match server.cli(["INFO", "server"]) {
            Reply::Bytes(bytes) => String::from_utf8_lossy(&bytes)
                .lines()
                .find_map(|line| line.strip_prefix("process_id:"))
                .expect("a server says which process it is")
                .to_owned(),
            other => panic!("{other:?} is no information"),
        };
        if let Some(cores) = cores {
            cores.bind_server(&process);
        }
        Self { server, process }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How many scripts clients have run.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub fn scripts(&self) -> u64 {
        let Reply::Bytes(bytes) = self.server.cli(["INFO", "commandstats"]) else {
            panic!("a server says what it has run");
        };
        let text = String::from_utf8_lossy(&bytes);
        let calls = text.lines().filter_map(|line| {
            let (name, told) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let is_script = matches!(name, "eval" | "evalsha" | "fcall");
            is_script.then(|| told.split(',').next()?.parse::<u64>().ok())?
        });
        calls.sum()
    }

    /// A connection of the client that sluicegate has, for many requests at once.
    ///
    /// # Panics
    ///
    /// When the server cannot be reached.
    pub async fn connection(&self) -> MultiplexedConnection {
        let client = Client::open(self.url()).expect("the server has a URL");
        client.get_multiplexed_async_connection().await.expect("the server runs")
    }

    /// How long it has been running on a core; `None` if the system does not report that.
    pub(super) fn time_on_core(&self) -> Option<Duration> {
        time_on_core(&self.process)
    }
}

pub(super) fn time_on_core(process: &str) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}
