//! The server that a node connects to, how sentinels are asked for it, and one attempt to connect.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, Value, cmd,
};
use tokio::task::JoinSet;

use super::connection::OpenConnection;
use super::open::{NodeContext, open, without_timeouts};
use crate::failure::{Failure, FailureKind};
use crate::runtime::before;

/// The server that a node connects to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The server with this address.
    Server(ConnectionInfo),
    /// The server that the sentinels name as master.
    Master(Sentinels),
}

impl Target {
    /// The name in logs and metrics: the address, without anything secret.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Server(info) => info.addr().to_string(),
            Self::Master(sentinels) => sentinels.service.clone(),
        }
    }

    pub(super) fn host(&self) -> &str {
        match self {
            Self::Server(info) => match info.addr() {
                ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
                _ => "",
            },
            Self::Master(_) => "",
        }
    }

    pub(super) async fn find(&self, context: &NodeContext) -> Result<ConnectionInfo, Failure> {
        match self {
            Self::Server(info) => Ok(info.clone()),
            Self::Master(sentinels) => sentinels.find_master(context).await,
        }
    }

    /// Checks that the server is a master: sentinels can be out of date.
    pub(super) async fn confirm(&self, wire: &mut MultiplexedConnection) -> Result<(), Failure> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Master(_) => must_be_master(wire).await,
        }
    }
}

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
    let on = (&context.connect, &context.runtime);
    let mut opened = open(server, without_timeouts(), on, || ()).await?;
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

/// Commands that may be queued before the connection takes them.
const QUEUED: usize = 1_024;

/// One attempt to connect to a node.
pub(super) struct Attempt<'a, C> {
    pub(super) target: &'a Target,
    pub(super) context: &'a NodeContext,
    /// Set here once the server has shown that it does not know RESP3.
    pub(super) only_resp2: &'a AtomicBool,
    /// Called when the connection ends by itself, so that this is noticed before the next command is sent in vain.
    pub(super) on_end: C,
}

impl<C: Fn() + Clone + Send + Sync + 'static> Attempt<'_, C> {
    pub(super) async fn run(&self) -> Result<OpenConnection, Failure> {
        let NodeContext { connect, runtime, .. } = self.context;
        let connected = before(runtime.timer(connect.timeout), self.connect()).await;
        connected.unwrap_or_else(|| {
            let detail = format!("not connected within {:?}", connect.timeout);
            Err(Failure::because(FailureKind::Unreachable, detail))
        })
    }

    async fn connect(&self) -> Result<OpenConnection, Failure> {
        let info = self.target.find(self.context).await?;
        let mut opened = match self.greet(&info).await {
            Err(error)
                if knows_no_resp3(&error) && !self.only_resp2.swap(true, Ordering::Relaxed) =>
            {
                self.greet(&info).await
            }
            greeted => greeted,
        }
        .map_err(|error| not_greeted(&error))?;
        self.target.confirm(&mut opened.wire).await?;
        if let Some(name) = &self.context.connect.client_name {
            let mut command = redis::cmd("CLIENT");
            command.arg("SETNAME").arg(&**name);
            // The name is for the operator only: a user without the right to set it works as well.
            let _ = opened.wire.send_packed_command(&command).await;
        }
        Ok(opened)
    }

    async fn greet(&self, info: &ConnectionInfo) -> Result<OpenConnection, RedisError> {
        let config = without_timeouts().set_pipeline_buffer_size(QUEUED);
        let mut redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        if !self.only_resp2.load(Ordering::Relaxed) {
            redis = redis.set_protocol(ProtocolVersion::RESP3);
        }
        let redis = redis.set_lib_name("sluicegate", env!("CARGO_PKG_VERSION"));
        let NodeContext { connect, runtime, .. } = self.context;
        let info = info.clone().set_redis_settings(redis);
        open(&info, config, (connect, runtime), self.on_end.clone()).await
    }
}

/// An error instead of a greeting concerns every client, whatever its code: too many clients, for one.
fn not_greeted(error: &RedisError) -> Failure {
    let failure = Failure::from(error);
    match failure.kind() {
        FailureKind::Script => Failure::because(FailureKind::Unreachable, error.to_string()),
        _ => failure,
    }
}

/// Redis before version 6 does not know `HELLO`; some proxies know it, but not RESP3.
fn knows_no_resp3(error: &RedisError) -> bool {
    let unknown = |detail: &str| detail.to_ascii_lowercase().contains("unknown command");
    error.kind() == ErrorKind::RESP3NotSupported
        || error.code() == Some("NOPROTO")
        || error.detail().is_some_and(unknown)
}

/// The same user, database and encryption at another address.
pub(crate) fn at_address(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let host = host.to_owned();
    let addr = match info.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    info.clone().set_addr(addr)
}
