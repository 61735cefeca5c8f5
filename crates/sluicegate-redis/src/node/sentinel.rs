//! Asking sentinels who the master is.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ConnectionInfo, RedisError, Value, cmd};
use tokio::task::JoinSet;

use super::Common;
use super::dial::{call, unhurried};
use super::target::moved_to;
use crate::failure::{Failure, FailureKind};

/// A service that sentinels watch.
#[derive(Debug, Clone)]
pub(crate) struct Sentinels {
    pub(crate) service: String,
    pub(crate) sentinels: Vec<ConnectionInfo>,
    /// How to talk to the master, once its address is known.
    pub(crate) master: ConnectionInfo,
}

impl Sentinels {
    /// All are asked at once, and the first that knows is believed: one that hangs delays nobody.
    pub(super) async fn find_master(&self, common: &Common) -> Result<ConnectionInfo, Failure> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(ask(sentinel.clone(), self.service.clone(), common.clone()));
        }
        let mut why = Failure::new(FailureKind::Unreachable);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok((host, port))) => return Ok(moved_to(&self.master, &host, port)),
                Ok(Err(failure)) => why = failure,
                Err(_) => {}
            }
        }
        Err(why)
    }
}

async fn ask(
    sentinel: ConnectionInfo,
    service: String,
    common: Common,
) -> Result<(String, u16), Failure> {
    let mut command = cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(&service);
    let address =
        answer(&sentinel, &command, &common).await.map_err(|error| Failure::from(&error))?;
    redis::from_redis_value::<(String, u16)>(address).map_err(|_| {
        let detail = format!("no sentinel knows a master named `{service}`");
        Failure::because(FailureKind::Unreachable, detail)
    })
}

async fn answer(
    server: &ConnectionInfo,
    command: &Cmd,
    common: &Common,
) -> Result<Value, RedisError> {
    let mut line = call(server, unhurried(), (&common.dial, &common.runtime)).await?;
    line.wire.send_packed_command(command).await?.extract_error()
}

pub(super) async fn must_be_master(wire: &mut MultiplexedConnection) -> Result<(), Failure> {
    let role = wire.send_packed_command(&cmd("ROLE")).await.and_then(Value::extract_error);
    match role.map_err(|error| Failure::from(&error))? {
        Value::Array(parts) if parts.first() == Some(&Value::BulkString(b"master".into())) => {
            Ok(())
        }
        _ => Err(Failure::because(FailureKind::ReadOnly, "the sentinels name a replica")),
    }
}
