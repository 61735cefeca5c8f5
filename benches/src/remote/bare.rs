use redis::aio::MultiplexedConnection;
use redis::{Cmd, cmd};

use super::Remote;
use super::scripts::{Named, ask};

/// `INCR`, which decides nothing: the upper bound.
#[derive(Debug, Clone)]
pub struct Increment(pub MultiplexedConnection);

impl Remote for Increment {
    async fn decide(&self, key: &str) -> bool {
        let mut command = Cmd::with_capacity(2, 64);
        command.arg("INCR").arg(format!("bare:{key}"));
        ask::<u64>(&self.0, &command).await > 0
    }
}

/// The same in a script of one line: the yardstick.
#[derive(Debug, Clone)]
pub struct OneLine {
    connection: MultiplexedConnection,
    script: Named,
}

impl OneLine {
    /// Sends the server the script.
    pub async fn new(connection: MultiplexedConnection) -> Self {
        let script = Named::load("return redis.call('INCR', KEYS[1])", &connection).await;
        Self { connection, script }
    }
}

impl Remote for OneLine {
    async fn decide(&self, key: &str) -> bool {
        let mut command = cmd("EVALSHA");
        command.arg(self.script.sha()).arg(1).arg(format!("line:{key}"));
        ask::<u64>(&self.connection, &command).await > 0
    }
}
