//! Opens the ports, serves, and stops without losing a request.

mod activity;
mod bound;
mod calls;
mod connection;
mod error;
mod listener;
mod routed;
mod server;
#[cfg(test)]
mod tests;
mod timed;
mod tls;
mod upload;

pub use self::activity::{Activity, InFlight, Tracked};
pub use self::bound::{Addresses, Bound, Reload};
pub use self::connection::Certificate;
pub use self::error::ServerError;
pub use self::listener::{Listener, ServeConnection};
pub use self::server::{Server, check_admin};
pub use self::timed::Timed;
pub use self::tls::{Tls, read_authorities, read_identity};
pub use self::upload::{Rest, Upload, close};
