//! Asks sentinels for the address of the master.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ConnectionInfo, RedisError, Value, cmd};
use tokio::task::JoinSet;

use super::context::NodeContext;
use super::handshake::{open, without_timeouts};
use crate::failure::{Failure, FailureKind};
use crate::wire::relocate::at_address;

/// A service that sentinels watch.
#[derive(Debug, Clone)]
pub(crate) struct Sentinels {
    pub(crate) service: String,
    pub(crate) sentinels: Vec<ConnectionInfo>,
    /// User, database and encryption of the master. Its address comes from the sentinels.
    pub(crate) master: ConnectionInfo,
}

impl Sentinels {
    /// Asks all sentinels at once and believes the first that knows, so that one that hangs delays nothing.
    pub(super) async fn find_master(
        &self,
        context: &NodeContext,
    ) -> Result<ConnectionInfo, Failure> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(ask(sentinel.clone(), self.service.clone(), context.clone()));
        }
        let mut why = Failure::new(FailureKind::Unreachable);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok((host, port))) => return Ok(at_address(&self.master, &host, port)),
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
    context: NodeContext,
) -> Result<(String, u16), Failure> {
    let mut command = cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(&service);
    let address =
        answer(&sentinel, &command, &context).await.map_err(|error| Failure::from(&error))?;
    redis::from_redis_value::<(String, u16)>(address).map_err(|_| {
        let detail = format!("no sentinel knows a master named `{service}`");
        Failure::because(FailureKind::Unreachable, detail)
    })
}

async fn answer(
    server: &ConnectionInfo,
    command: &Cmd,
    context: &NodeContext,
) -> Result<Value, RedisError> {
    let mut opened = open(server, without_timeouts(), (&context.connect, &context.runtime)).await?;
    opened.wire.send_packed_command(command).await?.extract_error()
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
