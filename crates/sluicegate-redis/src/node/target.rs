//! Whom a node connects to.

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ConnectionInfo};

use super::Common;
use super::sentinel::{Sentinels, must_be_master};
use crate::failure::Failure;

/// Whom a node connects to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The server with this address.
    Server(ConnectionInfo),
    /// Whichever server is the master by what the sentinels say.
    Master(Sentinels),
}

impl Target {
    /// What the operator reads: the address, and nothing secret.
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

    pub(super) async fn find(&self, common: &Common) -> Result<ConnectionInfo, Failure> {
        match self {
            Self::Server(info) => Ok(info.clone()),
            Self::Master(sentinels) => sentinels.find_master(common).await,
        }
    }

    /// Sentinels can be behind the times.
    pub(super) async fn confirm(&self, wire: &mut MultiplexedConnection) -> Result<(), Failure> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Master(_) => must_be_master(wire).await,
        }
    }
}

/// The same user, database and encryption at another address.
pub(crate) fn moved_to(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
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
