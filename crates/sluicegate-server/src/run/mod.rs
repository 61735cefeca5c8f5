//! Opens the ports, serves, and stops without losing a request.

mod activity;
mod bound;
mod calls;
mod connection;
mod connector;
mod error;
mod interim;
mod keepalive;
mod listener;
mod live_files;
mod routed;
mod server;
#[cfg(unix)]
mod socket;
#[cfg(test)]
mod tests;
mod timed;
mod tls;
mod upload;

pub(crate) use self::activity::{Activity, HoldingBody, InFlight};
pub use self::bound::{Addresses, Bound, Reload};
pub(crate) use self::connection::{Certificate, Connections, LINGER, shake_hands, stops};
pub(crate) use self::connector::ClientConnector;
pub use self::error::ServerError;
pub(crate) use self::error::{Causes, causes};
pub(crate) use self::interim::Interim;
pub(crate) use self::listener::Listener;
pub(crate) use self::live_files::{LiveCertificate, LiveFiles, Reader};
pub use self::server::Server;
pub(crate) use self::server::check_admin;
pub(crate) use self::timed::TimedStream;
pub use self::tls::Tls;
pub(crate) use self::tls::client_connector;
pub(crate) use self::upload::{Upload, close, close_unread};
