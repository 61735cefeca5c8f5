//! Servers that a test starts for itself: Redis or Valkey, alone, as a cluster, with a replica, or behind a sentinel; and
//! PostgreSQL.
//! Each has a free port and a directory of its own and begins empty. It is gone when it is dropped or when the test's
//! process ends, even if that is killed.

mod cluster;
mod port;
mod postgres;
mod process;
mod program;
mod replica;
mod resp;
mod sentinel;
mod server;
mod until;

pub use self::cluster::Cluster;
pub use self::postgres::{Postgres, is_root};
pub use self::process::{Directory, Process};
pub use self::program::Program;
pub use self::replica::Replica;
pub use self::resp::{Connection, Reply};
pub use self::sentinel::Sentinel;
pub use self::server::Server;
pub use self::until::until;
