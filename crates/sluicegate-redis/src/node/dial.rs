//! One attempt to connect.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ConnectionInfo, ErrorKind, ProtocolVersion, PushInfo, PushKind,
    RedisError,
};

use super::guard::Guarded;
use super::line::Line;
use super::{Common, Node, stream};
use crate::backoff::Backoff;
use crate::failure::{Failure, FailureKind};
use crate::runtime::{Runtime, before};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How connections are made.
#[derive(Debug, Clone)]
pub(crate) struct Dial {
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) client_name: Option<Arc<str>>,
    /// Whether RESP3 is tried first.
    pub(crate) resp3: bool,
    /// How long a question may stand unanswered before its connection is given up.
    pub(crate) silence: Duration,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

/// Questions that may stand before the connection without waiting for room there.
const ROOM: usize = 1_024;

pub(super) async fn attempt(node: &Arc<Node>, generation: u64) -> Result<Line, Failure> {
    let dial = &node.common.dial;
    let made = before(node.common.runtime.timer(dial.timeout), connect(node, generation)).await;
    made.unwrap_or_else(|| {
        let detail = format!("not connected within {:?}", dial.timeout);
        Err(Failure::because(FailureKind::Unreachable, detail))
    })
}

async fn connect(node: &Arc<Node>, generation: u64) -> Result<Line, Failure> {
    let info = node.target.find(&node.common).await?;
    let mut line = match greet(node, &info, generation).await {
        Err(error) if knows_no_resp3(&error) && !node.plain.swap(true, Ordering::Relaxed) => {
            greet(node, &info, generation).await
        }
        greeted => greeted,
    }
    .map_err(|error| not_greeted(&error))?;
    node.target.confirm(&mut line.wire).await?;
    if let Some(name) = &node.common.dial.client_name {
        let mut command = redis::cmd("CLIENT");
        command.arg("SETNAME").arg(&**name);
        // For the operator's eyes only: a user without the right to be named decides just as well.
        let _ = line.wire.send_packed_command(&command).await;
    }
    Ok(line)
}

async fn greet(
    node: &Arc<Node>,
    info: &ConnectionInfo,
    generation: u64,
) -> Result<Line, RedisError> {
    let mut config = unhurried().set_pipeline_buffer_size(ROOM);
    let mut redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    if !node.plain.load(Ordering::Relaxed) {
        redis = redis.set_protocol(ProtocolVersion::RESP3);
        let node = Arc::downgrade(node);
        config = config.set_push_sender(move |push: PushInfo| {
            // Noticed before anybody asks on it.
            if let (PushKind::Disconnection, Some(node)) = (push.kind, node.upgrade()) {
                node.lose(generation, &Failure::because(FailureKind::Unreachable, "it was closed"));
            }
            Ok::<(), ()>(())
        });
    }
    let redis = redis.set_lib_name("sluicegate", env!("CARGO_PKG_VERSION"));
    let Common { dial, runtime, .. } = &node.common;
    call(&info.clone().set_redis_settings(redis), config, (dial, runtime)).await
}

/// Connects, and says who it is.
pub(super) async fn call(
    info: &ConnectionInfo,
    config: AsyncConnectionConfig,
    (dial, runtime): (&Dial, &Arc<Runtime>),
) -> Result<Line, RedisError> {
    #[cfg(feature = "tls")]
    let stream = stream::open(info, dial.tls.as_ref()).await?;
    #[cfg(not(feature = "tls"))]
    let stream = stream::open(info).await?;
    let guarded = Guarded::new(stream, Arc::clone(runtime), dial.silence);
    let (wire, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), guarded, config).await?;
    Ok(Line::new(wire, &runtime.spawn(driver)))
}

/// What a server says instead of a greeting is about whoever comes, whatever it is: that it has too many clients,
/// for one.
fn not_greeted(error: &RedisError) -> Failure {
    let failure = Failure::from(error);
    match failure.kind() {
        FailureKind::Script => Failure::because(FailureKind::Unreachable, error.to_string()),
        _ => failure,
    }
}

/// The client's own timeouts would drop a question whose answer is still needed.
pub(super) fn unhurried() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

/// Redis before 6 does not know the greeting; some proxies know it, but not the protocol.
fn knows_no_resp3(error: &RedisError) -> bool {
    let unknown = |detail: &str| detail.to_ascii_lowercase().contains("unknown command");
    error.kind() == ErrorKind::RESP3NotSupported
        || error.code() == Some("NOPROTO")
        || error.detail().is_some_and(unknown)
}
