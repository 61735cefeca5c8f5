//! Which of several servers is the master, decided by etcd.

mod campaign;
mod candidacy;
mod cluster;
mod error;
#[rustfmt::skip]
#[expect(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated from proto/etcd.proto")]
mod generated;
mod keys;
#[cfg(test)]
mod tests;
mod transaction;

pub use self::candidacy::{Candidacy, Elected, Etcd};
pub use self::error::ConfigError;
