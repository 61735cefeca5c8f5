use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ConnectionInfo};

use super::context::NodeContext;
use super::sentinel::{Sentinels, must_be_master};
use crate::failure::Failure;

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
