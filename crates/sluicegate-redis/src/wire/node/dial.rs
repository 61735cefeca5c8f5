//! One attempt to connect to a node.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::{ConnectionInfo, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisError};

use super::context::NodeContext;
use super::driver::OpenConnection;
use super::handshake::{open, without_timeouts};
use super::target::Target;
use crate::failure::{Failure, FailureKind};
use crate::runtime::before;

/// Commands that may be queued before the connection takes them.
const QUEUED: usize = 1_024;

/// One attempt to connect to a node.
pub(super) struct Attempt<'a, C> {
    pub(super) target: &'a Target,
    pub(super) context: &'a NodeContext,
    /// Set here once the server has shown that it does not know RESP3.
    pub(super) only_resp2: &'a AtomicBool,
    /// Called when the server closes the connection, if it speaks RESP3.
    pub(super) on_close: C,
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
        let mut config = without_timeouts().set_pipeline_buffer_size(QUEUED);
        let mut redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        if !self.only_resp2.load(Ordering::Relaxed) {
            redis = redis.set_protocol(ProtocolVersion::RESP3);
            let on_close = self.on_close.clone();
            config = config.set_push_sender(move |push: PushInfo| {
                // Noticed before the next command would be sent in vain.
                if push.kind == PushKind::Disconnection {
                    on_close();
                }
                Ok::<(), ()>(())
            });
        }
        let redis = redis.set_lib_name("sluicegate", env!("CARGO_PKG_VERSION"));
        let NodeContext { connect, runtime, .. } = self.context;
        open(&info.clone().set_redis_settings(redis), config, (connect, runtime)).await
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
