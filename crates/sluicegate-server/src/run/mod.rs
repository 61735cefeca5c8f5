//! Opens the ports, serves, and stops without losing a request.

mod bound;
mod connection;
mod error;
mod listener;
mod patience;
mod server;
mod tls;

pub use self::bound::{Addresses, Bound, Reload};
pub use self::error::ServerError;
pub use self::server::Server;
pub use self::tls::Tls;
