//! Opens a connection, and greets the server.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionInfo, RedisError};

use super::context::ConnectSettings;
use super::driver::{Driver, OpenConnection};
use super::guard::Guarded;
use super::stream;
use crate::runtime::Runtime;

/// Connects, and sends `HELLO` or `AUTH` and `SELECT`.
pub(super) async fn open(
    info: &ConnectionInfo,
    config: AsyncConnectionConfig,
    (settings, runtime): (&ConnectSettings, &Arc<Runtime>),
) -> Result<OpenConnection, RedisError> {
    #[cfg(feature = "tls")]
    let stream = stream::open(info, settings.tls.as_ref()).await?;
    #[cfg(not(feature = "tls"))]
    let stream = stream::open(info).await?;
    let guarded = Guarded::new(stream, Arc::clone(runtime), settings.silence);
    let (wire, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), guarded, config).await?;
    Ok(OpenConnection { wire, driver: Driver::of(&runtime.spawn(driver)) })
}

/// Without the client's own timeouts: they would drop answers that are still needed.
pub(super) fn without_timeouts() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}
