use redis::aio::MultiplexedConnection;
use redis::cmd;

use super::scripts::ask;
use super::{BURST, Remote};

/// redis-cell's command, in a server that has the module.
#[derive(Debug, Clone)]
pub struct Cell(pub MultiplexedConnection);

impl Remote for Cell {
    async fn decide(&self, key: &str) -> bool {
        let mut command = cmd("CL.THROTTLE");
        command.arg(format!("cell:{key}")).arg(BURST).arg(1).arg(1).arg(1);
        let (limited, ..) = ask::<(u64, u64, u64, i64, i64)>(&self.0, &command).await;
        limited == 0
    }
}
